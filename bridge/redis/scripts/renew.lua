-- Prolongs sessions that a node holds, or writes what is not known of them.
--
-- KEYS: their hashes (see acquire). ARGV: 1 node, 2 ms from now; then nonce and
-- generation of each. Answer: a letter for each: k kept, l lost to another holder.
local letters = {}
for i, key in ipairs(KEYS) do
  local nonce, generation = ARGV[2 * i + 1], ARGV[2 * i + 2]
  local s = redis.call('HMGET', key, 'n', 'c', 'g')
  local more = s[1] and tonumber(s[3]) - tonumber(generation) or -1
  letters[i] = 'k'
  if more > 0 or more == 0 and s[2] ~= nonce then
    letters[i] = 'l'
  elseif more < 0 then
    redis.call('HSET', key, 'n', ARGV[1], 'c', nonce, 'g', generation)
    redis.call('PEXPIRE', key, ARGV[2])
  elseif s[1] ~= '' then -- else it was ended, and this comes late
    if s[1] ~= ARGV[1] then
      redis.call('HSET', key, 'n', ARGV[1])
    end
    redis.call('PEXPIRE', key, ARGV[2])
  end
end
return table.concat(letters)
