-- Takes the lowest hints out of a queue's window, unless it was filled for another epoch.
--
-- KEYS   [1] window, [2] epoch
-- ARGV   [1] epoch of the caller, [2] how many at most
-- result { "hints", then member and weight of each }, or { "foreign" }

if redis.call('GET', KEYS[2]) ~= ARGV[1] then return { 'foreign' } end
local hints = redis.call('ZPOPMIN', KEYS[1], ARGV[2])
return { 'hints', unpack(hints) }
