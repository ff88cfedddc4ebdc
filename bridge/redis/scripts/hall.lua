-- What change, list and sweep share: the hall, which is who is in one topic.
--
-- KEYS[1] is a hash:
--   pe epoch, q seq, r replication id under which pe began, m subjects in all,
--   c how many stamps were given, ns names of nodes, each followed by a blank
--   n:<node> "generation part members ms all": the last change of a node, how many
--            subjects it has, when that or the times to live were last set, 1 once it
--            has told all that it has
--   s:<subject> number of nodes that have it
-- KEYS[2] are the subjects, in order: a sorted set of scores 0.
-- KEYS[1]:/<node> is what a node has: a hash, subject to "stamp sessions data". The
-- data with the highest stamp is the subject's. "data" is a letter, j, m or -, and
-- the value in that codec.
--
-- Numbers are whole and at most 2^53-1; they become text by int alone.
local function int(n)
  return string.format('%.0f', n)
end

local never = 9007199254740991
local day = 86400000
local left = 120000 -- ms that a hall which everybody has left is kept

local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

local function keyof(node)
  return KEYS[1] .. ':/' .. node
end

-- begin makes it a hall in which nobody is, of a new epoch. What nodes had here is
-- no longer counted, so that it is dropped when they tell again.
local function begin(h)
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'pe', h.fresh, 'q', '0', 'r', h.r, 'm', '0', 'c', '0', 'ns', '')
  redis.call('PEXPIRE', KEYS[1], left)
  h.pe, h.q, h.m, h.c, h.ids, h.nodes = h.fresh, 0, 0, 0, {}, {}
end

-- open is the hall as it is. It is of a new epoch where its count may have gone
-- back: another server has become the primary, or the caller has seen more than
-- there is. Then who is here stays, and nodes mend it when they tell all. make: it
-- is begun if there is none.
local function open(fresh, claimed, reached, make)
  local r = ''
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'string' then
    if string.match(info, 'role:(%a+)') ~= 'master' then
      return nil, redis.error_reply('READONLY presence is told by the primary alone')
    end
    r = string.match(info, 'master_replid:(%x+)') or ''
  end
  local f = redis.call('HMGET', KEYS[1], 'pe', 'q', 'r', 'm', 'c', 'ns')
  local h = {
    fresh = fresh, r = r, now = clock(), pe = f[1], q = tonumber(f[2] or 0),
    m = tonumber(f[4] or 0), c = tonumber(f[5] or 0), ids = {}, nodes = {}, frame = {},
  }
  if not h.pe then
    if make then
      begin(h)
    end
    h.pe = fresh
    return h
  end
  if redis.call('ZCARD', KEYS[2]) ~= h.m then
    begin(h) -- a part of it is lost
    return h
  end
  local back = claimed == h.pe and reached > h.q
  if back or (r ~= '' and r ~= f[3]) then
    if back or f[3] ~= '' then
      h.pe = fresh
    end
    redis.call('HSET', KEYS[1], 'pe', h.pe, 'r', r)
  end
  for id in string.gmatch(f[6] or '', '%S+') do
    h.ids[#h.ids + 1] = id
  end
  if #h.ids > 0 then
    local fields = {}
    for i, id in ipairs(h.ids) do
      fields[i] = 'n:' .. id
    end
    for i, v in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
      local g, p, n, ms, all = string.match(v or '', '^(%d+) (%d+) (%d+) (%d+) (%d)$')
      if g then
        h.nodes[h.ids[i]] = {g = tonumber(g), p = tonumber(p), n = tonumber(n), ms = tonumber(ms), all = all}
      end
    end
  end
  return h
end

-- entry is what the hall knows of a node. Where that and what the node has do not
-- agree a part is lost, and the hall begins anew. nil: it has told nothing here.
local function entry(h, id)
  local e = h.nodes[id]
  if redis.call('HLEN', keyof(id)) ~= (e and e.n or 0) then
    if e then
      begin(h)
    end
    redis.call('DEL', keyof(id))
    return nil
  end
  return e
end

-- enter writes what the hall knows of a node, and forgets the nodes that have left
-- a while ago: no late change of theirs will come.
local function enter(h, id, e)
  if not h.nodes[id] then
    h.ids[#h.ids + 1] = id
  end
  h.nodes[id] = e
  local ns = ''
  for _, other in ipairs(h.ids) do
    local o = h.nodes[other]
    if o and (o.n > 0 or o.ms + 60000 > h.now) then
      ns = ns .. other .. ' '
    else
      redis.call('HDEL', KEYS[1], 'n:' .. other)
    end
  end
  redis.call('HSET', KEYS[1], 'm', int(h.m), 'c', int(h.c), 'q', int(h.q), 'ns', ns,
    'n:' .. id, int(e.g) .. ' ' .. int(e.p) .. ' ' .. int(e.n) .. ' ' .. int(e.ms) .. ' ' .. e.all)
end

-- prolong sets the times to live of all that a node answers for.
local function prolong(h, id)
  if h.m == 0 then
    redis.call('PEXPIRE', KEYS[1], left)
    return
  end
  redis.call('PEXPIRE', KEYS[1], day)
  redis.call('PEXPIRE', KEYS[2], day)
  redis.call('PEXPIRE', keyof(id), day)
end

-- parse takes what a node has of a subject apart: stamp, sessions, data.
local function parse(v)
  local a = string.find(v, ' ', 1, true)
  local b = string.find(v, ' ', a + 1, true)
  return tonumber(string.sub(v, 1, a - 1)), tonumber(string.sub(v, a + 1, b - 1)), string.sub(v, b + 1)
end

-- others is what nodes besides id have of a subject: the highest stamp, its data,
-- and sessions in all; -1 where none has it.
local function others(h, subject, id)
  local stamp, data, sessions = -1, nil, 0
  for _, other in ipairs(h.ids) do
    local o = h.nodes[other]
    if other ~= id and o and o.n > 0 then
      local v = redis.call('HGET', keyof(other), subject)
      if v then
        local t, n, d = parse(v)
        sessions = sessions + n
        if t > stamp then
          stamp, data = t, d
        end
      end
    end
  end
  return stamp, data, sessions
end

-- A frame's part is a letter, j(oined), u(pdated) or l(eft), and texts, each after its
-- length and ":".
local function text(s)
  return #s .. ':' .. s
end

local function tell(h, letter, subject, sessions, data)
  local part = letter .. text(subject)
  if data then
    part = part .. text(int(sessions) .. ' ' .. data)
  end
  h.frame[#h.frame + 1] = part
end

-- take makes a subject leave a node that has it as v.
local function take(h, id, subject, v)
  redis.call('HDEL', keyof(id), subject)
  if redis.call('HINCRBY', KEYS[1], 's:' .. subject, -1) < 1 then
    redis.call('HDEL', KEYS[1], 's:' .. subject)
    redis.call('ZREM', KEYS[2], subject)
    h.m = h.m - 1
    tell(h, 'l', subject)
    return
  end
  local stamp, _, data = parse(v)
  local most, other, sessions = others(h, subject, id)
  if other and most < stamp and other ~= data then
    tell(h, 'u', subject, sessions, other)
  end
end

-- publish tells all nodes what changed here, by a change of node id or, if gone,
-- since it is dead. What it counts is written by enter.
local function publish(h, word, channel, id, gone)
  local prev = h.q
  if #h.frame > 0 then
    h.q = h.q + 1
  elseif not gone then
    return
  end
  redis.call(word, channel,
    '1 ' .. id .. ' ' .. h.pe .. ' ' .. int(prev) .. ' ' .. int(h.q) .. ' ' .. (gone and '1' or '0') .. '\n' .. table.concat(h.frame))
end

-- answer is how all answers begin: epoch, seq, a flag, the nodes that have somebody
-- here, and those that have told all that they have.
local function answer(h, flag)
  local here, told = {}, {}
  for _, id in ipairs(h.ids) do
    local e = h.nodes[id]
    if e and e.n > 0 then
      here[#here + 1] = id
    end
    if e and e.all == '1' then
      told[#told + 1] = id
    end
  end
  return {h.pe, int(h.q), flag and '1' or '0', table.concat(here, ' '), table.concat(told, ' ')}
end
