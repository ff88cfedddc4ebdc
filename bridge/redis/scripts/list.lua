-- A page of who is in a topic, of one instant.
--
-- KEYS: the hall, its subjects, what the node has.
-- ARGV: 1 node, 2 fresh epoch, 3 and 4 the highest mark that the node has seen,
-- 5 subject after which the page begins, or '', 6 subjects at most.
--
-- Answer: see there; the flag tells that the node was declared dead. Then subjects in
-- all, 1 if there are more, and of each subject that and "sessions data".
local id = ARGV[1]
local h, refused = open(ARGV[2], ARGV[3], tonumber(ARGV[4]), false)
if not h then
  return refused
end
local e = entry(h, id)
if e and e.n > 0 and h.now > e.ms + day / 4 then
  e.ms = h.now
  enter(h, id, e)
  prolong(h, id)
end
local limit = tonumber(ARGV[6])
local page = {}
if limit > 0 then
  page = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[5] == '' and '-' or '(' .. ARGV[5], '+', 'LIMIT', 0, limit + 1)
end
local more = #page > limit or limit < 1 and h.m > 0
if #page > limit then
  page[#page] = nil
end
local reply = answer(h, e and e.g == never)
reply[6], reply[7] = int(h.m), more and '1' or '0'

-- A thousand at a time, since not more fits on Lua's stack.
local stamps, sessions, data = {}, {}, {}
for from = 1, #page, 1000 do
  local to = math.min(from + 999, #page)
  for _, node in ipairs(h.ids) do
    local o = h.nodes[node]
    if o and o.n > 0 then
      for k, v in ipairs(redis.call('HMGET', keyof(node), unpack(page, from, to))) do
        if v then
          local i = from + k - 1
          local stamp, n, d = parse(v)
          sessions[i] = (sessions[i] or 0) + n
          if stamp > (stamps[i] or -1) then
            stamps[i], data[i] = stamp, d
          end
        end
      end
    end
  end
end
for i, subject in ipairs(page) do
  reply[#reply + 1] = subject
  reply[#reply + 1] = int(sessions[i] or 0) .. ' ' .. (data[i] or '-')
end
return reply
