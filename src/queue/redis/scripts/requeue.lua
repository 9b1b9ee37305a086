-- From the dead list back into the queue, behind the others, with its attempts forgotten.
--
-- KEYS   see shared.lua
-- ARGV   [1] id
-- result "requeued", "absent" (from the dead list), or "present" (an item of this id is in the queue)

guard()
guardDead()
local id = ARGV[1]
local grave = redis.call('HGET', graves, id)
if not grave then return 'absent' end
if redis.call('HEXISTS', items, id) == 1 then return 'present' end
local now = time()
local length, rest = string.match(grave, '^%d+,(%d+);(.*)$')
local _, _, weight, enqueuedAt, _, own = parse(string.sub(rest, length + 1, -1))
redis.call('LLEN', ready .. ':' .. weight)
redis.call('ZREM', dead, id)
redis.call('HDEL', graves, id)
local number = redis.call('INCR', sequence)
redis.call('HSET', items, id, table.concat({ 0, number, weight, enqueuedAt, now, own }, ','))
redis.call('RPUSH', ready .. ':' .. weight, id)
redis.call('ZADD', weights, weight, weight)
signal()
return 'requeued'
