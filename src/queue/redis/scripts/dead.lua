-- The dead list, the oldest death first.
--
-- KEYS   see shared.lua
-- ARGV   [1] first, [2] last place wanted
-- result id and grave of each

local reply = {}
for _, id in ipairs(redis.call('ZRANGE', dead, ARGV[1], ARGV[2])) do
  reply[#reply + 1] = id
  reply[#reply + 1] = redis.call('HGET', graves, id)
end
return reply
