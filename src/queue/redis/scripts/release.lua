-- Back into the queue, under the old sequence.
--
-- KEYS   see shared.lua
-- ARGV   [1] taker, then per item: id, token, delay in ms, "spent" or "unspent" (not counted as taken)
-- result per item "released", or "gone" when it was no longer the taker's

guard()
local holdings = held .. ':' .. ARGV[1]
local now = time()
local reply = {}
for at = 2, #ARGV, 4 do
  local id, token, delay, spending = unpack(ARGV, at, at + 3)
  local record = redis.call('HGET', holdings, id) == token and redis.call('HGET', items, id)
  if record then
    redis.call('HDEL', holdings, id)
    local spent = spending == 'spent'
    local attempts = attemptOf(token) - (spent and 0 or 1)
    giveBack(id, record, attempts, spent and now + delay or nil, now)
  end
  reply[#reply + 1] = record and 'released' or 'gone'
end
return reply
