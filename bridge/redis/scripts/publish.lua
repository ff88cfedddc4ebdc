-- Batches, each of one topic, as one step: what is a repeat is answered, the rest gets
-- its places, is kept, and is handed to all nodes.
--
-- KEYS: for each batch buffer, meta, then those of dedup keys.
-- ARGV: 1 node, 2 PUBLISH or SPUBLISH, 3 a fresh epoch, then what the topics' kinds have
-- in common: 4 events kept, 5 age in ms, 6 bytes kept, 7 dedup window in ms; 8 whether a
-- batch may have been done before. Then for each batch its token, channel, the highest
-- position that the node has seen (epoch, offset), a verdict for each publication or one
-- for all, which the number of its dedup keys and a blank precede if it has any, 7 digits
-- of the size of each; then its texts, and, if it has dedup keys, after each text the number
-- of its own and its eid, or ''.
-- Verdict: b to be kept, p only passed on; else why it is refused unless it is a
-- repeat, which is also what the answer then says.
--
-- Answer: for each batch its mark, "time token epoch offset letters": 13 digits of now, the
-- offset of the first that was kept, and a letter for each publication or one for all (its
-- verdict; d: a repeat; f: no offset left); where there are repeats a list of that and the
-- first result of each.
local node, word, fresh = ARGV[1], ARGV[2], ARGV[3]
local keep, limit, most, window, again = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8] == '1'
local at, refused = server()
if not at then
  return refused
end
local byte, concat, unpack, KEYS, ARGV = string.byte, table.concat, unpack, KEYS, ARGV
local mine, taken = 't:' .. node, format('%013d', at.now)
local version, surplus = '1 ' .. node .. ' ', int(-keep - 1)
local usual = at.r .. ' ' .. int(limit) .. ' '
local alone = usual .. '- 0'

-- answered is the answer to a batch that was done before; nil: it was not.
local function answered(meta, token, k, i, count)
  local mark = call('HGET', meta, mine)
  if not mark or sub(mark, 15, 15 + #token) ~= token .. ' ' then
    return nil
  end
  local letters, answer = string.match(mark, '(%a+)$'), {mark}
  for n = 1, #letters do
    if sub(letters, n, n) == 'd' then
      answer[#answer + 1] = call('GET', KEYS[k + 1 + string.match(ARGV[i + 2 * n - 1], '^%d+')]) or ''
    end
  end
  return answer
end

-- keeps is whether anything of a batch gets a place: what is only passed on, and repeats,
-- begin no epoch.
local function keeps(k, i, letters, count, step)
  for n = 1, count do
    local letter = #letters == 1 and letters or sub(letters, n, n)
    local key = step == 2 and string.match(ARGV[i + 2 * n - 1], '^%d+')
    if letter == 'b' and not (key and call('EXISTS', KEYS[k + 1 + key]) == 1) then
      return true
    end
  end
  return false
end

-- Every byte of every text that is made costs the server 2 ns, and twice that if more than
-- 8 KiB are joined from a table: longer runs of events are several messages. A batch of one
-- event, which is what many rooms bring, makes no table and no text but its member, its
-- message and its mark. Numbers are handed to commands as texts: made there they cost more.
local joined = 7900

-- publish does the batch whose keys begin at k, and whose arguments begin at h. It
-- returns the answer, and where the next one begins.
local function publish(k, h)
  local buffer, meta, token, channel = KEYS[k], KEYS[k + 1], ARGV[h], ARGV[h + 1]
  local claimed, reached = ARGV[h + 2], ARGV[h + 3]
  local letters, sizes, i = ARGV[h + 4], ARGV[h + 5], h + 6
  local count, keys, step, all = #sizes / 7, 0, 1, #letters == 1
  if not all and byte(letters) < 65 then
    local n, rest = string.match(letters, '^(%d+) (%a+)$')
    keys, letters, step, all = tonumber(n), rest, 2, #rest == 1
  end
  local nextk, nexth = k + 2 + keys, i + count * step

  local answer = again and answered(meta, token, k, i, count)
  if answer then
    return answer, nextk, nexth
  end
  local m = call('HMGET', meta, 'o', 'e', 'b', 'k', 'n')
  local e, o, b, past, t, keeping = m[2], tonumber(m[1]), m[3], '- 0', nil, true
  local known = e and (m[4] == alone or sub(m[4], 1, #usual) == usual)
  if not known or at.now >= m[5] + 0 or claimed == e and reached ~= m[1] and tonumber(reached) > o then
    keeping = keeps(k, i, letters, count, step)
    t = open(at, buffer, meta, fresh, claimed, tonumber(reached), not keeping and claimed or nil, tonumber(reached))
    o, e, b = t.o, t.e, t.b
    if t.l ~= '' then
      past = string.gsub(string.match(t.l, '[^,]+$'), ':', ' ')
    end
  elseif m[4] ~= alone then
    past = sub(m[4], #usual + 1)
  end

  local first, last, kept, oldest, members = nil, m[1], 0, nil, nil
  local message, texts, length, messages, passing, remember, repeats = nil, nil, joined, nil, nil, nil, nil
  local letter = letters
  for n = 1, count do
    if not all then
      letter = sub(letters, n, n)
    end
    local text, key, eid, before = ARGV[i], nil, nil, nil
    if keys > 0 and ARGV[i + 1] ~= '' then
      key, eid = string.match(ARGV[i + 1], '^(%d+) (.*)$')
      key = k + 1 + key
      remember = remember or {}
      before = remember[key] or call('GET', KEYS[key])
    end
    if before or letter == 'b' and o >= never then
      if all then
        letters, all = string.rep(letters, count), false
      end
      letters = sub(letters, 1, n - 1) .. (before and 'd' or 'f') .. sub(letters, n + 1)
      if before then
        repeats = repeats or {}
        repeats[#repeats + 1] = before
      end
    elseif letter == 'b' then
      o, kept = o + 1, kept + 1
      local place, size = format('%d', o), count == 1 and sizes or sub(sizes, 7 * n - 6, 7 * n)
      last = place
      local member = place .. '|' .. text .. taken .. size
      if kept == 1 then
        first, oldest = place, member
      else
        members = members or {first, oldest}
        members[2 * kept - 1], members[2 * kept] = place, member
      end
      length, b = length + #text + 1, b + size
      if length > joined then
        if message then
          messages = messages or {}
          messages[#messages + 1] = texts and concat(texts, '\n') or message
        end
        message, texts, length = version .. e .. ' ' .. place .. ' ' .. past .. '\n' .. text, nil, #text
      else
        texts = texts or {message}
        texts[#texts + 1] = text
      end
      if key then
        remember[key] = e .. ' ' .. place .. ' ' .. eid
      end
    elseif letter == 'p' then
      passing = passing or {}
      passing[#passing + 1] = text
      if key then
        remember[key] = '- 0 ' .. eid
      end
    end
    i = i + step
  end

  local mark = taken .. ' ' .. token .. ' ' .. e .. ' ' .. (first or '0') .. ' ' .. letters
  -- low, if the oldest is another one now.
  local low, lost = nil, false
  if kept > 0 then
    local before = call('ZCARD', buffer)
    if members then
      call('ZADD', buffer, unpack(members))
    else
      call('ZADD', buffer, first, oldest)
    end
    if before + kept > keep then
      call('ZREMRANGEBYRANK', buffer, '0', surplus)
      low = o - keep + 1
    elseif before == 0 then
      low, lost = o - kept + 1, true -- or it is the first: a key that is new lives for ever until it is told
    end
  end
  if t then
    t.o, t.b = o, b
    if kept > 0 and t.a ~= limit then
      t.a = limit
      put(t, 'a', int(limit))
      lost = true
    end
    if lost then
      t.x = 0
    end
    age(t)
    b = t.b
  end
  if kept > 0 and most > 0 and b > most then
    local full = t or {buffer = buffer, c = tonumber(call('HGET', meta, 'c') or 1)}
    full.o, full.b = o, b
    narrow(full, most)
    b, low = full.b, full.c
    if not t then
      call('HSET', meta, 'c', int(full.c))
    end
  end
  if remember then
    for key, value in pairs(remember) do
      call('SET', KEYS[key], value, 'PX', window)
    end
  end
  if t then
    put(t, 'o', int(o))
    put(t, mine, mark)
    close(t, true, keeping and at.r .. ' ' .. int(t.a) .. ' ' .. past or nil)
  elseif low then
    call('HSET', meta, 'o', last, 'b', format('%d', b), mine, mark, 'low', format('%d', low))
    if lost then
      call('PEXPIRE', buffer, int(lifetime(limit)))
    end
  else
    call('HSET', meta, 'o', last, 'b', format('%d', b), mine, mark)
  end

  -- Last, when everything is kept: whoever hears of an event can read it.
  for n = 1, messages and #messages or 0 do
    call(word, channel, messages[n])
  end
  if message then
    call(word, channel, texts and concat(texts, '\n') or message)
  end
  if passing then
    call(word, channel, version .. '- 0 - 0\n' .. concat(passing, '\n'))
  end
  return repeats and {mark, unpack(repeats)} or mark, nextk, nexth
end

local answers, k, h = {}, 1, 9
while h <= #ARGV do
  answers[#answers + 1], k, h = publish(k, h)
end
return answers
