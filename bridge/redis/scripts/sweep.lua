-- Takes a dead node out of a topic: all that it has is subtracted once, some at a
-- time, whoever calls.
--
-- KEYS: the hall, its subjects, what the dead node has.
-- ARGV: 1 the dead node, 2 PUBLISH or SPUBLISH, 3 channel, 4 fresh epoch, 5 and 6 the
-- highest mark that the caller has seen, 7 how many subjects may go.
--
-- Answer: see there; the flag tells that some are left.
local id, most = ARGV[1], tonumber(ARGV[7])
local h, refused = open(ARGV[4], ARGV[5], tonumber(ARGV[6]), false)
if not h then
  return refused
end
local e = entry(h, id)
if not e or e.n == 0 then
  return answer(h, false)
end
local cursor, gone = '0', 0
repeat
  local some = redis.call('HSCAN', KEYS[3], cursor, 'COUNT', 128)
  cursor = some[1]
  local seen = {}
  for i = 1, #some[2], 2 do
    local subject = some[2][i]
    if gone < most and not seen[subject] then
      seen[subject] = true
      take(h, id, subject, some[2][i + 1])
      gone = gone + 1
    end
  end
until cursor == '0' or gone >= most
e.n = redis.call('HLEN', KEYS[3])
if e.n == 0 then
  e.g, e.p, e.all = never, 0, '0' -- nothing of it counts that comes late
end
e.ms = h.now
publish(h, ARGV[2], ARGV[3], id, e.n == 0)
enter(h, id, e)
if h.m == 0 then
  prolong(h, id)
end
return answer(h, e.n > 0)
