-- A taker's heartbeat; whoever beats gives back what takers without one held.
--
-- KEYS   see shared.lua
-- ARGV   [1] taker, [2] lease in ms
-- result "beating"

guard()
local taker, leaseMs = ARGV[1], tonumber(ARGV[2])
local now = time()
reclaim(now, leaseMs)
redis.call('ZREM', takers, taker) -- a full Redis refuses a script whose first write adds
redis.call('ZADD', takers, now + leaseMs, taker)
redis.call('SET', heard, now)
return 'beating'
