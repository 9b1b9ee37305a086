-- A taker that missed an answer goes on under a new name with the items it knows of; what it does not
-- know of goes back as never taken. A take that arrives late, under the old name, lapses.
--
-- KEYS   see shared.lua
-- ARGV   [1] old name, [2] new name, [3] lease in ms, then the ids it knows of
-- result "adopted"

guard()
local old, new = ARGV[1], ARGV[2]
local now = time()
local known = {}
redis.call('ZREM', takers, old) -- first: a full Redis refuses a script whose first write adds
for at = 4, #ARGV do
  local id = ARGV[at]
  local token = redis.call('HGET', held .. ':' .. old, id)
  known[id] = true
  if token then redis.call('HSET', held .. ':' .. new, id, token) end
end
empty(old, known, false, now)
redis.call('DEL', held .. ':' .. old)
redis.call('ZADD', takers, now + ARGV[3], new)
return 'adopted'
