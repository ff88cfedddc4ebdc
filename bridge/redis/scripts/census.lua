-- Notes that a node lives, and counts those that do.
--
-- KEYS: nodes, by when they are taken for dead. ARGV: 1 node, 2 ms from now.
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
redis.call('ZADD', KEYS[1], string.format('%d', now + tonumber(ARGV[2])), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now))
redis.call('PEXPIRE', KEYS[1], 86400000) -- nodes may differ in how long they are waited for
return redis.call('ZCARD', KEYS[1])
