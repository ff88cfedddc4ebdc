-- Batches, each of one topic, as one step: what is a repeat is answered, the rest gets
-- its places, is kept, and is handed to all nodes.
--
-- KEYS: for each batch buffer, meta, then those of dedup keys.
-- ARGV: 1 node, 2 PUBLISH or SPUBLISH; then for each batch: number of its dedup keys,
-- number of its publications, its token, channel, fresh epoch, the highest position that
-- the node has seen (epoch, offset), events kept, age in ms, bytes kept, dedup window in
-- ms; then three for each publication: verdict and 7 digits of its size, number of its
-- dedup key and its eid or '', text.
-- Verdict: b to be kept, p only passed on; else why it is refused unless it is a
-- repeat, which is also what the answer then says.
--
-- Answer: for each batch epoch, offset of the first that was kept, a letter for each
-- publication (its verdict; d: a repeat; f: no offset left), then the first result of
-- each d.
local node, word = ARGV[1], ARGV[2]
local version = '1 ' .. node .. ' '
local at, refused = server()
if not at then
  return refused
end

-- again answers a batch whose reply was lost; nil: this is not one.
local function again(t, token, k, i, last)
  local mark = t.mark and string.sub(t.mark, 15) -- after the 13 digits of when it was
  if not mark or string.sub(mark, 1, #token + 1) ~= token .. ' ' then
    return nil
  end
  local epoch, first, letters = string.match(mark, '^%d+ (%S+) (%d+) (%a+)$')
  local answer = {epoch, first, letters}
  for n = i, last, 3 do
    if string.sub(letters, (n - i) / 3 + 1, (n - i) / 3 + 1) == 'd' then
      local key = string.match(ARGV[n + 1], '%d+')
      answer[#answer + 1] = redis.call('GET', KEYS[k + 1 + tonumber(key)]) or ''
    end
  end
  return answer
end

-- publish does the batch whose keys begin at k, and whose publications are ARGV[i] to
-- ARGV[last].
local function publish(k, head, i, last)
  local token, channel = ARGV[head + 2], ARGV[head + 3]
  local t = open(at, KEYS[k], KEYS[k + 1], ARGV[head + 4], ARGV[head + 5], tonumber(ARGV[head + 6]), node)
  local answer = again(t, token, k, i, last)
  if answer then
    close(t, false)
    return answer
  end
  local first, added = t.o + 1, 0
  local letters, repeats, members, kept, passing, remember = {}, {}, {}, {}, {}, {}
  local taken = string.format('%013d', t.now)
  for n = i, last, 3 do
    local letter, key, eid, text = string.sub(ARGV[n], 1, 1), nil, nil, ARGV[n + 2]
    if ARGV[n + 1] ~= '' then
      key, eid = string.match(ARGV[n + 1], '^(%d+) (.*)$')
      key = k + 1 + key
    end
    local before = key and (remember[key] or redis.call('GET', KEYS[key]))
    if before then
      letter = 'd'
      repeats[#repeats + 1] = before
    elseif letter == 'b' and t.o >= never then
      letter = 'f'
    elseif letter == 'b' then
      t.o = t.o + 1
      local m, o, size = #members, int(t.o), string.sub(ARGV[n], 2)
      members[m + 1] = o
      members[m + 2] = o .. '|' .. text .. taken .. size
      added = added + size
      kept[#kept + 1] = text
      if key then
        remember[key] = t.e .. ' ' .. o .. ' ' .. eid
      end
    elseif letter == 'p' then
      passing[#passing + 1] = text
      if key then
        remember[key] = '- 0 ' .. eid
      end
    end
    letters[#letters + 1] = letter
  end
  letters = table.concat(letters)

  if #kept > 0 then
    local keep, most = tonumber(ARGV[head + 7]), tonumber(ARGV[head + 9])
    age(t, tonumber(ARGV[head + 8])) -- before the new ones come, which are of no age
    redis.call('ZADD', t.buffer, unpack(members))
    local n = redis.call('ZCARD', t.buffer)
    t.b = n > #kept and t.b + added or added -- the buffer may have gone without its record
    if n > keep then
      redis.call('ZREMRANGEBYRANK', t.buffer, 0, n - keep - 1)
      n = keep
      put(t, 'i', '1')
      t.i = '1'
    end
    if most > 0 and t.b > most and t.i == '1' then
      measure(t)
    end
    while most > 0 and t.b > most and n > 0 do
      n = n - drop(t, 1)
    end
    if t.a > 0 and t.d == never then
      t.d = t.now + t.a
      put(t, 'd', int(t.d))
    end
    put(t, 'o', int(t.o))
    put(t, 'low', int(t.o - n + 1))
    put(t, 'b', int(t.b))
  end
  for key, value in pairs(remember) do
    redis.call('SET', KEYS[key], value, 'PX', ARGV[head + 10])
  end
  put(t, 't:' .. node, string.format('%013d', t.now) .. ' ' .. token .. ' ' .. t.e .. ' ' .. int(first) .. ' ' .. letters)
  close(t, true)

  -- Last, when everything is kept: whoever hears of an event can read it.
  if #kept > 0 then
    local past, ended
    if t.l ~= '' then
      past, ended = string.match(t.l, '([^:,]+):(%d+)$')
    end
    redis.call(word, channel, version .. t.e .. ' ' .. int(first) .. ' ' .. (past or '-') .. ' ' .. (ended or '0') ..
      '\n' .. table.concat(kept, '\n'))
  end
  if #passing > 0 then
    redis.call(word, channel, version .. '- 0 - 0\n' .. table.concat(passing, '\n'))
  end
  return {t.e, int(first), letters, unpack(repeats)}
end

local answers, k, head = {}, 1, 3
while head <= #ARGV do
  local i = head + 11
  local last = i + 3 * tonumber(ARGV[head + 1]) - 1
  answers[#answers + 1] = publish(k, head, i, last)
  k = k + 2 + tonumber(ARGV[head])
  head = last + 1
end
return answers
