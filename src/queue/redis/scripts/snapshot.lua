-- KEYS   see shared.lua
-- ARGV   none
-- result { ready, scheduled, taken, dead }

local due = redis.call('ZCOUNT', scheduled, '-inf', time())
local taken = 0
for _, taker in ipairs(redis.call('ZRANGE', takers, 0, -1)) do
  taken = taken + redis.call('HLEN', held .. ':' .. taker)
end
return {
  countReady() + due,
  redis.call('ZCARD', scheduled) - due,
  taken,
  redis.call('ZCARD', dead),
}
