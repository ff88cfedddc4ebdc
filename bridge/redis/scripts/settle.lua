-- What a command came to, by the one that did it.
--
-- KEYS: the command's dedup key. ARGV: 1 its token, 2 the value to be, 3 for how many
-- ms. Answer: whether the attempt was still its own.
if redis.call('GET', KEYS[1]) ~= 'p ' .. ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
