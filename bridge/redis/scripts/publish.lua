-- One batch of one topic, as one step: what is a repeat is answered, the rest gets
-- its places, is kept, and is handed to all nodes.
--
-- KEYS: buffer, meta, then those of dedup keys.
-- ARGV: 1 node, 2 the batch's token, 3 PUBLISH or SPUBLISH, 4 channel, 5 fresh epoch,
-- 6 and 7 the highest position that the node has seen, 8 events kept, 9 age in ms,
-- 10 bytes kept, 11 dedup window in ms; then five for each publication:
-- verdict, number of its dedup key or 0, eid, size, text.
-- Verdict: b to be kept, p only passed on; else why it is refused unless it is a
-- repeat, which is also what the answer then says.
--
-- Answer: epoch, offset of the first that was kept, a letter for each publication
-- (its verdict; d: a repeat; f: no offset left), then the first result of each d.
local node, token = ARGV[1], ARGV[2]
local t, refused = open(KEYS[1], KEYS[2], ARGV[5], ARGV[6], tonumber(ARGV[7]))
if not t then
  return refused
end

local function result(key)
  return redis.call('GET', key) or ''
end

-- This batch again: its reply was lost.
local mark = redis.call('HGET', t.meta, 't:' .. node)
if mark then
  local epoch, first, letters = string.match(mark, '^%d+ ' .. token .. ' (%S+) (%d+) (%a+)$')
  if letters then
    local answer = {epoch, first, letters}
    for i = 1, #letters do
      if string.sub(letters, i, i) == 'd' then
        answer[#answer + 1] = result(KEYS[2 + tonumber(ARGV[8 + 5 * i])])
      end
    end
    close(t, false)
    return answer
  end
end

local keep, most, window = tonumber(ARGV[8]), tonumber(ARGV[10]), tonumber(ARGV[11])
local first = t.o + 1
local letters, repeats, members, kept, passing = {}, {}, {}, {}, {}
local remember, added = {}, 0
for i = 12, #ARGV, 5 do
  local letter, key, eid = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local before = key > 0 and (remember[key] or redis.call('GET', KEYS[2 + key]))
  if before then
    letter = 'd'
    repeats[#repeats + 1] = before
  elseif letter == 'b' and t.o >= never then
    letter = 'f'
  elseif letter == 'b' then
    t.o = t.o + 1
    local n, o = #members, int(t.o)
    members[n + 1] = o
    members[n + 2] = o .. '|' .. ARGV[i + 4] .. string.format('%013.0f%07.0f', t.now, tonumber(ARGV[i + 3]))
    added = added + tonumber(ARGV[i + 3])
    kept[#kept + 1] = ARGV[i + 4]
    if key > 0 then
      remember[key] = t.e .. ' ' .. o .. ' ' .. eid
    end
  elseif letter == 'p' then
    passing[#passing + 1] = ARGV[i + 4]
    if key > 0 then
      remember[key] = '- 0 ' .. eid
    end
  end
  letters[#letters + 1] = letter
end
letters = table.concat(letters)

if #kept > 0 then
  age(t, tonumber(ARGV[9])) -- before the new ones come, which are of no age
  redis.call('ZADD', t.buffer, unpack(members))
  local n = redis.call('ZCARD', t.buffer)
  t.b = n > #kept and t.b + added or added -- the buffer may have gone without its record
  if n > keep then
    n = n - drop(t, n - keep)
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
  redis.call('SET', KEYS[2 + key], value, 'PX', window)
end
put(t, 't:' .. node, int(t.now) .. ' ' .. token .. ' ' .. t.e .. ' ' .. int(first) .. ' ' .. letters)
close(t, true)

-- Last, when everything is kept: whoever hears of an event can read it.
local version = '1 ' .. node .. ' '
if #kept > 0 then
  local past, ended = string.match(t.l, '([^:,]+):(%d+)$')
  redis.call(ARGV[3], ARGV[4],
    version .. t.e .. ' ' .. int(first) .. ' ' .. (past or '-') .. ' ' .. (ended or '0') .. '\n' .. table.concat(kept, '\n'))
end
if #passing > 0 then
  redis.call(ARGV[3], ARGV[4], version .. '- 0 - 0\n' .. table.concat(passing, '\n'))
end
return {t.e, int(first), letters, unpack(repeats)}
