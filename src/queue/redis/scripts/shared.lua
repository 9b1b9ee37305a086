-- Prepended to every script of a queue. All its keys share one hash tag, hence one slot.
--
-- KEYS [1] items      hash    id → record, from enqueue to ack
--      [2] ready      lists   "<key>:<weight>", ids in the order of their sequences
--      [3] weights    zset    the weights whose list is not empty
--      [4] returned   zset    id → rank: ready, but not in the order of the lists (fell due, came back)
--      [5] scheduled  zset    id → due time
--      [6] takers     zset    taker → when its items are given to others
--      [7] held       hashes  "<key>:<taker>", id → token: "attempt,sequence" of the take
--      [8] dead       zset    id → order of death
--      [9] graves     hash    id → "time of death,length of the error;error" and its record
--      [10] wake      list    at most one signal, for takers that block
--      [11] sequence  string  the last sequence given out
--      [12] heard     string  when a taker's heartbeat was last heard
--
-- A record is "attempts,sequence,weight,enqueued at,ready at or nothing,rest": the rest is the client's.

if redis.replicate_commands then redis.replicate_commands() end -- Redis < 7: TIME before a write

local items, ready, weights, returned, scheduled, takers, held, dead, graves, wake, sequence, heard =
  unpack(KEYS)
local atOnce = 1000 -- unpack() has a limit, and nobody should wait long for one script
local span = 2 ^ 45 -- sequences per weight: 201 weights fit into a double's 53 bits

local function time()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function rankOf(weight, number)
  return (weight + 100) * span + number
end

-- Of a record that somebody else wrote: as if it were all rest. Its taker will see that it is none.
local function parse(record)
  local attempts, number, weight, enqueuedAt, readyAt, rest =
    string.match(record, '^(%d+),(%d+),(%-?%d+),(%d+),(%d*),(.*)$')
  if not attempts then return '0', '0', '0', '0', '', record end
  return attempts, number, weight, enqueuedAt, readyAt, rest
end

-- A script that fails midway leaves half of its work behind. So whatever could make it fail, a key of
-- another type, is met here, before its first write.
local function guard()
  redis.call('HLEN', items)
  redis.call('ZCARD', weights)
  redis.call('ZCARD', returned)
  redis.call('ZCARD', scheduled)
  redis.call('ZCARD', takers)
  redis.call('LLEN', wake)
end

local function guardDead()
  redis.call('ZCARD', dead)
  redis.call('HLEN', graves)
  redis.call('STRLEN', sequence)
end

local function signal()
  if redis.call('LLEN', wake) == 0 then redis.call('RPUSH', wake, '1') end
end

local function somethingIsReady()
  return redis.call('EXISTS', weights) == 1 or redis.call('EXISTS', returned) == 1
end

local function countReady()
  local count = redis.call('ZCARD', returned)
  for _, weight in ipairs(redis.call('ZRANGE', weights, 0, -1)) do
    count = count + redis.call('LLEN', ready .. ':' .. weight)
  end
  return count
end

-- Ready again, under its old sequence, or due at `dueAt`.
local function giveBack(id, record, attempts, dueAt, now)
  local _, number, weight, enqueuedAt, readyAt, rest = parse(record)
  if dueAt then readyAt = dueAt end
  redis.call('HSET', items, id,
    table.concat({ attempts, number, weight, enqueuedAt, readyAt, rest }, ','))
  if dueAt and dueAt > now then
    redis.call('ZADD', scheduled, dueAt, id)
    if redis.call('ZRANK', scheduled, id) == 0 then signal() end
  else
    redis.call('ZADD', returned, rankOf(weight, number), id)
    signal()
  end
end

-- Of a token, or the attempts of a record.
local function attemptOf(text)
  return tonumber(string.match(text, '^%d+') or 0)
end

-- A record in which the take under way is counted.
local function counted(record, token)
  return attemptOf(token) .. string.sub(record, string.find(record, ',', 1, true) or 1, -1)
end

-- Everything that a taker holds and the given ids do not name goes back, as taken or as never taken.
local function empty(taker, kept, spent, now)
  local entries = redis.call('HGETALL', held .. ':' .. taker)
  for i = 1, #entries, 2 do
    local id, attempt = entries[i], attemptOf(entries[i + 1])
    if not kept[id] then
      local record = redis.call('HGET', items, id)
      redis.call('HDEL', held .. ':' .. taker, id)
      if record then giveBack(id, record, spent and attempt or attempt - 1, nil, now) end
    end
  end
end

-- When nobody at all was heard of, the server was away, or slow, or failed over, rather than every taker
-- dead: then all of them get another lease to be heard of.
local function reclaim(now, leaseMs)
  local lapsed = redis.call('ZRANGEBYSCORE', takers, '-inf', now, 'LIMIT', 0, 10)
  if #lapsed == 0 then return end
  local heardAt = redis.call('GET', heard)
  if not heardAt or now - heardAt > leaseMs * 2 / 3 then
    redis.call('DEL', heard) -- a full Redis refuses a script whose first write adds
    redis.call('SET', heard, now)
    for _, taker in ipairs(redis.call('ZRANGE', takers, 0, -1)) do
      redis.call('ZADD', takers, now + leaseMs, taker)
    end
    return
  end
  for _, taker in ipairs(lapsed) do
    redis.call('ZREM', takers, taker)
    empty(taker, {}, true, now)
  end
end
