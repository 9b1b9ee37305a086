-- Removes some of what is ready or scheduled.
--
-- KEYS   see shared.lua
-- ARGV   none
-- result how many were removed; 0 when nothing waits any more

guard()
local ids = {}
local weight = redis.call('ZRANGE', weights, 0, 0)[1]
if weight then
  local list = ready .. ':' .. weight
  ids = redis.call('LRANGE', list, 0, atOnce - 1)
  redis.call('LTRIM', list, #ids, -1)
  if redis.call('EXISTS', list) == 0 then redis.call('ZREM', weights, weight) end
else
  for _, key in ipairs({ returned, scheduled }) do
    if #ids == 0 then
      ids = redis.call('ZRANGE', key, 0, atOnce - 1)
      if #ids > 0 then redis.call('ZREMRANGEBYRANK', key, 0, #ids - 1) end
    end
  end
end
if #ids > 0 then redis.call('HDEL', items, unpack(ids)) end
return #ids
