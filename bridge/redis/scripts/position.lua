-- What publish and read share. Numbers are whole and at most 2^53-1, so that
-- doubles are exact; they become text by int alone, since tostring would round.
local function int(n)
  return string.format('%d', n)
end

local never = 9007199254740991
local day = 86400000

-- A topic's members and its record: buffer is the sorted set, meta the hash.
--   e epoch, o head, low oldest kept, r replication id under which e began,
--   l past epochs with their ends, oldest first: "e:o,e:o"
--   b sum of sizes kept, or more than it if i is 1, a age in ms, d when the oldest is too old,
--   x when the times to live are to be set anew, j whether anyone has joined
-- t is the record; what changed is named in t.set.
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
  local t = redis.call('TIME')
  return {r = r or '', now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)}
end

-- open makes history that may have regressed a new epoch: the record is gone, or
-- another server became the primary, or the caller has seen more than there is.
-- node's last batch, if a node is given, is t.mark.
local function open(at, buffer, meta, fresh, claimed, reached, node)
  local r = at.r
  local m = redis.call('HMGET', meta, 'e', 'o', 'r', 'l', 'b', 'a', 'd', 'x', 'j', 'low', 't:' .. node, 'i')
  local t = {
    buffer = buffer, meta = meta, now = at.now, set = {}, mark = m[11], i = m[12],
    e = m[1], o = tonumber(m[2] or 0), l = m[4] or '', b = tonumber(m[5] or 0),
    a = tonumber(m[6] or 0), d = tonumber(m[7] or 0), x = tonumber(m[8] or 0), j = m[9],
    low = tonumber(m[10] or 1),
  }
  if not t.e then
    redis.call('DEL', buffer)
    t.e, t.o, t.l, t.b, t.d, t.low = fresh, 0, '', 0, 0, 1
    t.set = {'e', fresh, 'o', '0', 'r', r, 'l', '', 'b', '0', 'low', '1'}
  elseif (r ~= '' and r ~= m[3]) or (claimed == t.e and reached > t.o) then
    if r == '' or m[3] ~= '' or (claimed == t.e and reached > t.o) then
      local past = t.e .. ':' .. int(t.o)
      t.l = t.l == '' and past or (t.l .. ',' .. past)
      local _, commas = string.gsub(t.l, ',', '')
      if commas >= 16 then
        t.l = string.sub(t.l, string.find(t.l, ',', 1, true) + 1)
      end
      t.e = fresh
      t.set = {'e', fresh, 'r', r, 'l', t.l}
    else
      t.set = {'r', r} -- it was denied until now
    end
  end
  return t
end

local function put(t, field, value)
  local n = #t.set
  t.set[n + 1], t.set[n + 2] = field, value
end

-- The last 20 characters of a member are digits: 13 of the ms since 1970 at which
-- it was taken, 7 of its size.
local function drop(t, n)
  local gone = redis.call('ZPOPMIN', t.buffer, n)
  for i = 1, #gone, 2 do
    t.b = t.b - tonumber(string.sub(gone[i], -7))
  end
  return #gone / 2
end

-- measure finds b out anew. It is wrong only after events went by number, and only
-- then, when by it there are too many bytes, it is looked at.
local function measure(t)
  t.b, t.i = 0, '0'
  for _, member in ipairs(redis.call('ZRANGE', t.buffer, 0, -1)) do
    t.b = t.b + string.sub(member, -7)
  end
  put(t, 'i', '0')
end

-- age removes what is too old. The buffer, if it is not empty, ends at the head.
local function age(t, limit)
  if limit ~= t.a then
    t.a, t.d, t.x = limit, 0, 0
    put(t, 'a', int(limit))
  end
  if t.now < t.d then
    return
  end
  t.d = never
  while limit > 0 do
    local oldest = redis.call('ZRANGE', t.buffer, 0, 0)[1]
    if not oldest then
      break
    end
    local due = tonumber(string.sub(oldest, -20, -8)) + limit
    if due > t.now then
      t.d = due
      break
    end
    drop(t, 1)
  end
  put(t, 'd', int(t.d))
  put(t, 'b', int(t.b))
end

-- close writes the record back. Times to live are set anew when they are due: a
-- little longer than promised, so that this is seldom.
local function close(t, wrote)
  if wrote and t.now >= t.x then
    local life = t.a > 0 and t.a or day
    local slack = math.max(1000, math.min(math.floor(life / 4), 3600000))
    t.x = t.now + slack
    put(t, 'x', int(t.x))
    redis.call('HSET', t.meta, unpack(t.set))
    redis.call('PEXPIRE', t.buffer, int(life + 60000 + slack))
    redis.call('PEXPIRE', t.meta, int((t.j and math.max(day, life) or life + 3600000) + 60000 + slack))
    -- Marks of nodes that have published nothing for a minute.
    local fields = redis.call('HGETALL', t.meta)
    for i = 1, #fields, 2 do
      if string.sub(fields[i], 1, 2) == 't:' then
        local at = tonumber(string.match(fields[i + 1], '^(%d+)'))
        if at and at + 60000 < t.now then
          redis.call('HDEL', t.meta, fields[i])
        end
      end
    end
  elseif #t.set > 0 then
    redis.call('HSET', t.meta, unpack(t.set))
  end
end
