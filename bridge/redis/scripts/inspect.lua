-- What is wrong with a server that works, or ''.
local replication = redis.pcall('INFO', 'replication')
if type(replication) ~= 'string' then
  return 'INFO is denied inside scripts: a failover is noticed by positions alone'
end
local memory = redis.pcall('INFO', 'memory')
if type(memory) ~= 'string' then
  return ''
end
local policy = string.match(memory, 'maxmemory_policy:(%S+)')
if string.match(memory, 'maxmemory:(%d+)') == '0' or policy == 'noeviction' or policy == 'volatile-ttl' then
  return ''
end
return 'maxmemory-policy ' .. policy .. ' may evict what is kept'
