-- Takes a session over, if it is known and not held higher than the caller can prove.
--
-- KEYS: the session's hash: n node, c nonce, g generation; n is empty where it was
-- ended. ARGV: 1 node, 2 nonce, 3 generation, 4 ms that it is held.
-- Answer: 'ended', 'outdated', or 'taken', generation and the holder before: node,
-- nonce, generation.
local s = redis.call('HMGET', KEYS[1], 'n', 'c', 'g')
if not s[1] or s[1] == '' then
  return {'ended'}
end
if tonumber(s[3]) > tonumber(ARGV[3]) then
  return {'outdated'}
end
local g = string.format('%.0f', tonumber(ARGV[3]) + 1)
redis.call('HSET', KEYS[1], 'n', ARGV[1], 'c', ARGV[2], 'g', g)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'taken', g, s[1], s[2], s[3]}
