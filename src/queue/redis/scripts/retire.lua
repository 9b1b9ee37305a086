-- A taker takes no more: what it still holds goes back as never taken.
--
-- KEYS   see shared.lua
-- ARGV   [1] taker
-- result "retired"

guard()
local taker = ARGV[1]
empty(taker, {}, false, time())
redis.call('ZREM', takers, taker)
if somethingIsReady() then signal() end
return 'retired'
