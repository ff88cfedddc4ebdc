-- Whether the server can be worked with: everything that scripts and nodes do is tried, or
-- asked for, and nothing is changed.
--
-- KEYS: a name under which there never is anything. ARGV: 1 PUBLISH or SPUBLISH,
-- 2 SUBSCRIBE or SSUBSCRIBE, 3 a channel.
-- Answer: why it cannot be, or ''; what is wrong though it can, or ''.
local key = KEYS[1]
for _, command in ipairs({
  {'PING'}, {'TIME'}, {'EVAL', '', '0'}, {'EVALSHA', '', '0'},
  {'EXISTS', key}, {'GET', key}, {'SET', key, ''}, {'DEL', key}, {'PEXPIRE', key, '1'},
  {'HGET', key, ''}, {'HGETALL', key}, {'HMGET', key, ''}, {'HLEN', key}, {'HSCAN', key, '0'},
  {'HSET', key, '', ''}, {'HINCRBY', key, '', '1'}, {'HDEL', key, ''},
  {'ZADD', key, '0', ''}, {'ZCARD', key}, {'ZPOPMIN', key}, {'ZREM', key, ''},
  {'ZRANGE', key, '0', '0'}, {'ZRANGEBYLEX', key, '-', '+'}, {'ZRANGEBYSCORE', key, '0', '0'},
  {'ZREVRANGEBYSCORE', key, '0', '0'}, {'ZREMRANGEBYRANK', key, '0', '0'}, {'ZREMRANGEBYSCORE', key, '0', '0'},
  {ARGV[1], ARGV[3], ''}, {ARGV[2], ARGV[3]}, {string.gsub(ARGV[2], 'SUB', 'UNSUB', 1), ARGV[3]},
}) do
  local known, may = pcall(redis.acl_check_cmd, unpack(command))
  if not known or not may then
    return {'the server denies ' .. command[1], ''}
  end
end
redis.call('SET', key, '', 'PX', '1', 'XX') -- which is refused where nothing may be written

local replication = redis.pcall('INFO', 'replication')
if type(replication) ~= 'string' then
  return {'', 'INFO is denied inside scripts: a failover is noticed by positions alone'}
end
local memory = redis.pcall('INFO', 'memory')
if type(memory) ~= 'string' then
  return {'', ''}
end
local policy = string.match(memory, 'maxmemory_policy:(%S+)')
if string.match(memory, 'maxmemory:(%d+)') == '0' or policy == 'noeviction' or policy == 'volatile-ttl' then
  return {'', ''}
end
return {'', 'maxmemory-policy ' .. policy .. ' may evict what is kept'}
