-- Takes the lowest hints out of a queue's window, unless it was filled for another epoch. One caller at
-- a time is told to refill a window that is empty, foreign, or was cut and runs low.
--
-- KEYS   [1] window, [2] epoch, [3] cut, [4] refill
-- ARGV   [1] epoch of the caller, [2] how many at most, [3] below how many a cut window runs low,
--        [4] milliseconds for which nobody else is told to refill
-- result { "enough" or "refill", then member and weight of each hint }

local hints = {}
local wanting = true
if redis.call('GET', KEYS[2]) == ARGV[1] then
  hints = redis.call('ZPOPMIN', KEYS[1], ARGV[2])
  wanting = #hints == 0
    or (redis.call('EXISTS', KEYS[3]) == 1 and redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[3]))
end
-- A full server refuses this, and serves hints all the same.
local asked = wanting and redis.pcall('SET', KEYS[4], '1', 'NX', 'PX', ARGV[4])
return { type(asked) == 'table' and asked.ok and 'refill' or 'enough', unpack(hints) }
