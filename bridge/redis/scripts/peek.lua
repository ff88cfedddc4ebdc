-- A part of a topic's history as it stands: nothing is changed, not even what is due.
--
-- KEYS: buffer, meta. ARGV: 1 whether there is a position to read from, 2 and 3 that,
-- 4 members at most, 1 or more. Answer: nothing if there is no such topic, else epoch, head, why the
-- position cannot be served ('epoch') or '', then the members.
local m = redis.call('HMGET', KEYS[2], 'e', 'o', 'l', 'a')
if not m[1] then
  return {}
end
local from = '-inf'
if ARGV[1] == '1' then
  local ended = m[1] == ARGV[2] and m[2]
  for e, o in string.gmatch(m[3] or '', '([^:,]+):(%d+)') do
    if e == ARGV[2] then
      ended = o
    end
  end
  if not ended or tonumber(ARGV[3]) > tonumber(ended) then
    return {m[1], m[2], 'epoch'}
  end
  from = '(' .. ARGV[3]
end
local t, age, page = redis.call('TIME'), tonumber(m[4] or 0), {m[1], m[2], ''}
local oldest = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000) - age
local limit, at = tonumber(ARGV[4]), 0
repeat
  local some = redis.call('ZRANGEBYSCORE', KEYS[1], from, '+inf', 'LIMIT', at, limit)
  for _, member in ipairs(some) do
    local taken = tonumber(string.sub(member, -20, -8))
    if #page < 3 + limit and (age == 0 or not taken or taken > oldest) then
      page[#page + 1] = member
    end
  end
  at = at + #some
until #some < limit or #page == 3 + limit
return page
