-- What one node tells of a topic: who is there on it, and who not any more.
--
-- KEYS: the hall, its subjects, what the node has.
-- ARGV: 1 node, 2 generation and 3 part, which together rise with every change of
-- the node, 4 PUBLISH or SPUBLISH, 5 channel, 6 fresh epoch, 7 and 8 the highest mark
-- that the node has seen, 9 whether (1) whoever is not named leaves, 10 how many are
-- there; of each of them subject, sessions and data; then subjects: who is not there,
-- or, if whoever is not named leaves, who is there as it was.
--
-- Answer: see there; the flag tells that the node was declared dead.
local id, g, p = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local h, refused = open(ARGV[6], ARGV[7], tonumber(ARGV[8]), true)
if not h then
  return refused
end
local e = entry(h, id)
if e and (g < e.g or g == e.g and p <= e.p) then
  return answer(h, e.g == never)
end
e = e or {n = 0, ms = 0, all = '0'}
local due = h.m == 0 or e.n == 0 or h.now > e.ms + day / 4
local own = KEYS[3]
h.c = h.c + 1

local whole, count = ARGV[9] == '1', tonumber(ARGV[10])
local stay = {}

local function put(subject, sessions, data)
  local v = redis.call('HGET', own, subject)
  local stamp, was, old = h.c, nil, nil
  if v then
    stamp, was, old = parse(v)
    if old == data then
      if was ~= sessions then
        redis.call('HSET', own, subject, int(stamp) .. ' ' .. int(sessions) .. ' ' .. data)
      end
      return
    end
  end
  redis.call('HSET', own, subject, int(h.c) .. ' ' .. int(sessions) .. ' ' .. data)
  if not v then
    e.n = e.n + 1
    if redis.call('HINCRBY', KEYS[1], 's:' .. subject, 1) == 1 then
      redis.call('ZADD', KEYS[2], 0, subject)
      h.m = h.m + 1
      tell(h, 'j', subject, sessions, data)
      return
    end
  end
  local most, other, more = others(h, subject, id)
  local shown = old
  if other and (not v or most > stamp) then
    shown = other
  end
  if shown ~= data then
    tell(h, 'u', subject, sessions + more, data)
  end
end

local last = 10 + 3 * count
if not whole then
  for i = last + 1, #ARGV do
    local v = redis.call('HGET', own, ARGV[i])
    if v then
      take(h, id, ARGV[i], v)
      e.n = e.n - 1
    end
  end
end
for i = 11, last, 3 do
  put(ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2])
  stay[ARGV[i]] = true
end
if whole then
  for i = last + 1, #ARGV do
    stay[ARGV[i]] = true
  end
  local all = redis.call('HGETALL', own)
  for i = 1, #all, 2 do
    if not stay[all[i]] then
      take(h, id, all[i], all[i + 1])
      e.n = e.n - 1
    end
  end
end

publish(h, ARGV[4], ARGV[5], id, false)
due = due or h.m == 0
e.g, e.p = g, p
if whole then
  e.all = '1'
end
if due or e.n == 0 then
  e.ms = h.now
end
enter(h, id, e)
if due then
  prolong(h, id)
end
return answer(h, false)
