-- Onto the dead list.
--
-- KEYS   see shared.lua
-- ARGV   [1] taker, then per item: id, token, error
-- result per item "buried", or "gone" when it was no longer the taker's

guard()
guardDead()
local holdings = held .. ':' .. ARGV[1]
local now = time()
local reply = {}
for at = 2, #ARGV, 3 do
  local id, token, failure = unpack(ARGV, at, at + 2)
  local record = redis.call('HGET', holdings, id) == token and redis.call('HGET', items, id)
  if record then
    redis.call('HDEL', holdings, id)
    redis.call('HDEL', items, id)
    local grave = now .. ',' .. #failure .. ';' .. failure .. counted(record, token)
    redis.call('HSET', graves, id, grave)
    redis.call('ZADD', dead, redis.call('INCR', sequence), id)
  end
  reply[#reply + 1] = record and 'buried' or 'gone'
end
return reply
