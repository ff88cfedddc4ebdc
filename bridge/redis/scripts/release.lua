-- Ends a session that its node still holds, or that is not known. What is left says
-- so to a renewal that comes late, for a while.
--
-- KEYS: the session's hash (see acquire). ARGV: 1 nonce, 2 generation, 3 ms for which
-- it says so. Answer: whether it was.
local s = redis.call('HMGET', KEYS[1], 'c', 'g')
if s[1] and (s[1] ~= ARGV[1] or s[2] ~= ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'n', '', 'c', ARGV[1], 'g', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
