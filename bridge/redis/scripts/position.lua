-- What publish and read share. Numbers are whole and at most 2^53-1, so that
-- doubles are exact; they become text by int alone, since tostring would round.
local call, format, sub = redis.call, string.format, string.sub

local function int(n)
  return format('%d', n)
end

local never = 9007199254740991
local day = 86400000

-- A topic's members and its record: buffer is the sorted set, meta the hash.
--   o head, e epoch, r replication id under which e began, l past epochs with their
--   ends, oldest first: "e:o,e:o", low oldest kept,
--   b sum of sizes of events c to o, which is more than is kept if the oldest is not c,
--   a age in ms, x when the times to live are to be set anew, j whether anyone has joined
--   n until when, and k while what, publish need look at no more than o, e and b: k is
--   "r a e o" with the last of the past epochs, or "- 0"
-- What is read by name is found the sooner the earlier it stands: those five come first.
--
-- server is what one call needs to know of where it runs: which history this is,
-- and what time it is. nil: it is no primary, which alone gives positions.
local function server()
  local info = redis.pcall('INFO', 'replication')
  local role, r
  if type(info) == 'string' then
    role, r = string.match(info, 'role:(%a+).-master_replid:(%x+)')
    if role and role ~= 'master' then
      return nil, redis.error_reply('READONLY positions are given by the primary alone')
    end
  end
  local t = call('TIME')
  return {r = r or '', now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)}
end

local function put(t, field, value)
  local n = #t.set
  t.set[n + 1], t.set[n + 2] = field, value
end

-- open makes history that may have regressed a new epoch: the record is gone, or
-- another server became the primary, or the caller has seen more than there is.
-- Who only reads, from pe and po, or repeats, goes without where it lacks nothing of what is here:
-- nodes would take their rooms to an epoch in which nothing has happened, and if that
-- was lost with the next failover, reset members who had lost nothing.
-- t is the record; what changed is named in t.set.
local function open(at, buffer, meta, fresh, claimed, reached, pe, po)
  local m = call('HMGET', meta, 'o', 'e', 'b', 'r', 'l', 'a', 'x', 'j', 'c', 'low')
  local r = at.r
  local t = {
    buffer = buffer, meta = meta, now = at.now, set = {},
    o = tonumber(m[1] or 0), e = m[2], b = tonumber(m[3] or 0), was = tonumber(m[3] or 0), l = m[5] or '',
    a = tonumber(m[6] or 0), x = tonumber(m[7] or 0), j = m[8], c = tonumber(m[9] or 1), low = tonumber(m[10]),
  }
  if not t.e then
    call('DEL', buffer)
    t.o, t.e, t.b, t.l, t.c = 0, fresh, 0, '', 1
    t.set = {'o', '0', 'e', fresh, 'b', '0', 'k', '', 'n', '0', 'r', r, 'l', ''}
  elseif claimed == t.e and reached > t.o
    or r ~= '' and r ~= m[4] and m[4] ~= '' and (not pe or pe == t.e and po > t.o) then
    local past = t.e .. ':' .. int(t.o)
    t.l = t.l == '' and past or (t.l .. ',' .. past)
    local _, commas = string.gsub(t.l, ',', '')
    if commas >= 16 then
      t.l = sub(t.l, string.find(t.l, ',', 1, true) + 1)
    end
    t.e = fresh
    t.set = {'e', fresh, 'k', '', 'r', r, 'l', t.l}
  elseif r ~= '' and m[4] == '' then
    t.set = {'r', r} -- it was denied until now
  end
  return t
end

-- The last 20 characters of a member are digits: 13 of the ms since 1970 at which
-- it was taken, 7 of its size. drop removes the oldest.
local function drop(t)
  local gone = call('ZPOPMIN', t.buffer)
  t.b = t.b - sub(gone[1], -7)
  if tonumber(gone[2]) == t.c then
    t.c = t.c + 1
  end
end

-- age removes what is too old, and finds out when something will be.
local function age(t)
  t.due = t.a > 0 and t.now + t.a or never -- of what comes now
  while t.a > 0 do
    local oldest = call('ZRANGE', t.buffer, 0, 0)[1]
    if not oldest then
      break
    end
    t.due = tonumber(sub(oldest, -20, -8)) + t.a
    if t.due > t.now then
      break
    end
    drop(t)
  end
end

-- narrow removes the oldest until there are at most so many bytes. Where events went
-- by number, or went with the key, t.b is found out anew first.
local function narrow(t, most)
  local n = call('ZCARD', t.buffer)
  if n ~= t.o - t.c + 1 then
    t.b, t.c = 0, t.o - n + 1
    for _, member in ipairs(call('ZRANGE', t.buffer, 0, -1)) do
      t.b = t.b + sub(member, -7)
    end
  end
  while t.b > most and n > 0 do
    drop(t)
    n = n - 1
  end
end

-- lifetime is how long a buffer whose events are kept for so many ms lives after a write,
-- and how much of that is more than promised.
local function lifetime(age)
  local life = age > 0 and age or day
  local slack = math.max(1000, math.min(math.floor(life / 4), 3600000))
  return life + 60000 + slack, slack
end

-- close writes the record back, and returns where the history begins. After a write
-- times to live are set anew if they are due: a little longer than promised, so that
-- this is seldom. k, if given, stands until the next look is due, which is a little
-- later than the oldest event is too old: who reads does not get it.
local function close(t, wrote, k)
  local life, slack = lifetime(t.a)
  local renew = wrote and t.now >= t.x
  if renew then
    t.x = t.now + slack
    put(t, 'x', int(t.x))
  end
  if k then
    put(t, 'k', k)
    put(t, 'n', int(math.min(t.x, math.max(t.due, t.now + math.floor(t.a / 16)))))
  end
  if t.b ~= t.was then
    put(t, 'b', int(t.b))
    put(t, 'c', int(t.c))
  end
  local low = t.o - call('ZCARD', t.buffer) + 1
  if low ~= t.low then
    put(t, 'low', int(low))
  end
  if #t.set > 0 then
    call('HSET', t.meta, unpack(t.set))
  end
  if renew then
    call('PEXPIRE', t.buffer, int(life))
    call('PEXPIRE', t.meta, int(t.j and math.max(day + 60000 + slack, life) or life + 3600000))
    -- Marks of nodes that have published nothing for a minute.
    local fields = call('HGETALL', t.meta)
    for i = 1, #fields, 2 do
      if sub(fields[i], 1, 2) == 't:' then
        local at = tonumber(string.match(fields[i + 1], '^(%d+)'))
        if at and at + 60000 < t.now then
          call('HDEL', t.meta, fields[i])
        end
      end
    end
  end
  return low
end
