-- A page of a topic's history, of one instant.
--
-- KEYS: buffer, meta.
-- ARGV: 1 fresh epoch, 2 and 3 the highest position that the node has seen,
-- 4 whether there is a position to read from, 5 and 6 that, 7 events at most, 8 bytes
-- at most, 9 whether newest first, 10 whether somebody joins or has interest.
-- Flags are 1 or 0.
--
-- Answer: epoch, head, why the position cannot be served ('epoch', 'expired') or '',
-- 1 if there is more, then the members.
local at, refused = server()
if not at then
  return refused
end
local t = open(at, KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3]))
age(t)
local joins = ARGV[10] == '1'
if joins and not t.j then
  t.j, t.x = '1', 0
  put(t, 'j', '1')
end
local low = close(t, joins or call('EXISTS', t.meta) == 0)

local has, pe, po = ARGV[4] == '1', ARGV[5], tonumber(ARGV[6])
local limit, bytes, reverse = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9] == '1'

local function valid()
  if pe == t.e then
    return po <= t.o
  end
  for e, o in string.gmatch(t.l, '([^:,]+):(%d+)') do
    if e == pe then
      return po <= tonumber(o)
    end
  end
  return false
end

local from, to = low, t.o
if has then
  if not valid() then
    return {t.e, int(t.o), 'epoch', '0', {}}
  end
  if reverse then
    to = math.min(to, po - 1)
  elseif po < low - 1 then
    return {t.e, int(t.o), 'expired', '0', {}}
  else
    from = po + 1
  end
end

-- Some at a time, so that no more is copied than fits.
local page, size, more = {}, 0, from <= to and limit < 1
local left = limit
while left > 0 and from <= to and not more do
  local some
  local n = math.min(left, 32)
  if reverse then
    some = call('ZREVRANGEBYSCORE', t.buffer, int(to), int(from), 'LIMIT', 0, n)
    to = to - n
  else
    some = call('ZRANGEBYSCORE', t.buffer, int(from), int(to), 'LIMIT', 0, n)
    from = from + n
  end
  left = left - n
  if #some == 0 then
    break
  end
  for _, member in ipairs(some) do
    size = size + tonumber(sub(member, -7))
    if #page > 0 and bytes > 0 and size > bytes then
      more = true
      break
    end
    page[#page + 1] = member
  end
  if left == 0 and from <= to then
    more = true
  end
end
return {t.e, int(t.o), '', more and '1' or '0', page}
