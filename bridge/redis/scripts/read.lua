-- Pages of topics' history, of one instant.
--
-- KEYS: for each topic buffer, meta.
-- ARGV: 1 fresh epoch, 2 whether this may have been done before, which does not matter;
-- then for each topic: the highest position that the node has seen (epoch, offset),
-- whether there is a position to read from, that (epoch, offset), events at most, bytes at
-- most, whether newest first, whether somebody joins or has interest. Flags are 1 or 0.
--
-- Answer: for each topic epoch, head, why the position cannot be served ('epoch',
-- 'expired') or '', 1 if there is more, then the members.
local at, refused = server()
if not at then
  return refused
end

local function valid(t, pe, po)
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

-- page is that of the topic whose keys begin at k, and whose arguments begin at h.
local function page(k, h)
  local has, pe, po = ARGV[h + 2] == '1', ARGV[h + 3], tonumber(ARGV[h + 4])
  local t = open(at, KEYS[k], KEYS[k + 1], ARGV[1], ARGV[h], tonumber(ARGV[h + 1]), pe, po)
  age(t)
  local joins = ARGV[h + 8] == '1'
  if joins and not t.j then
    t.j, t.x = '1', 0
    put(t, 'j', '1')
  end
  local low = close(t, joins or call('EXISTS', t.meta) == 0)
  local limit, bytes, reverse = tonumber(ARGV[h + 5]), tonumber(ARGV[h + 6]), ARGV[h + 7] == '1'

  local from, to = low, t.o
  if has then
    if not valid(t, pe, po) then
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
  local members, size, more = {}, 0, from <= to and limit < 1
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
      if #members > 0 and bytes > 0 and size > bytes then
        more = true
        break
      end
      members[#members + 1] = member
    end
    if left == 0 and from <= to then
      more = true
    end
  end
  return {t.e, int(t.o), '', more and '1' or '0', members}
end

local answers = {}
for k = 1, #KEYS, 2 do
  answers[#answers + 1] = page(k, 3 + 9 * (k - 1) / 2)
end
return answers
