-- Done with: the items leave the queue.
--
-- KEYS   see shared.lua
-- ARGV   [1] taker, then per item (at most 1000): id, token
-- result per item "done", or "gone" when it was no longer the taker's

guard()
local holdings = held .. ':' .. ARGV[1]
local ids, reply, done = {}, {}, {}
for at = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
local tokens = redis.call('HMGET', holdings, unpack(ids))
local seen = {}
for i, id in ipairs(ids) do
  if tokens[i] == ARGV[2 * i + 1] and not seen[id] then
    seen[id] = true
    done[#done + 1] = id
    reply[i] = 'done'
  else
    reply[i] = 'gone'
  end
end
if #done > 0 then
  redis.call('HDEL', holdings, unpack(done))
  redis.call('HDEL', items, unpack(done))
end
return reply
