-- Who does a command.
--
-- KEYS: the command's dedup key. ARGV: 1 the caller's token, 2 hold in ms, 3 the
-- token that it has been waiting for, or ''.
--
-- The value is "p token" while somebody does it, "d result" afterwards; "e token
-- error" and "w token result" tell those who waited for that token, and nobody else.
-- Answer: "p token" (the caller's own: it is the one), the value that it has been
-- waiting for, "d result", or "l": what it waited for is over.
local v = redis.call('GET', KEYS[1])
local kind = v and string.sub(v, 1, 1)
if kind == 'd' then
  return v
end
if ARGV[3] ~= '' then
  if v and string.match(v, '^%a (%d+)') == ARGV[3] then
    return v
  end
  return 'l'
end
if kind == 'p' then
  return v
end
redis.call('SET', KEYS[1], 'p ' .. ARGV[1], 'PX', ARGV[2])
return 'p ' .. ARGV[1]
