-- Takes what is ready, by weight and sequence, into the taker's holdings.
--
-- KEYS   see shared.lua
-- ARGV   [1] taker, [2] how many at most (no more than 1000), [3] lease in ms
-- result { ms until the next item is due or -1, then id and record of each item }

guard()
local taker, most, leaseMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now = time()
local taken = {}
local mostBytes = 2 ^ 22 -- in one answer, so that it arrives in good time; one item at least

local function promote()
  local due = redis.call('ZRANGEBYSCORE', scheduled, '-inf', now, 'LIMIT', 0, atOnce)
  if #due == 0 then return end
  redis.call('ZREM', scheduled, unpack(due))
  local ranks = {}
  for i, record in ipairs(redis.call('HMGET', items, unpack(due))) do
    if record then
      local _, number, weight = parse(record)
      ranks[#ranks + 1] = rankOf(weight, number)
      ranks[#ranks + 1] = due[i]
    end
  end
  if #ranks > 0 then redis.call('ZADD', returned, unpack(ranks)) end
end

local function lowestWeight()
  local listed = tonumber(redis.call('ZRANGE', weights, 0, 0)[1])
  local back = redis.call('ZRANGE', returned, 0, 0, 'WITHSCORES')[2]
  if not back then return listed end
  local weight = math.floor(tonumber(back) / span) - 100
  return listed and math.min(listed, weight) or weight
end

local function numbersOf(ids)
  local numbers = {}
  for i, record in ipairs(redis.call('HMGET', items, unpack(ids))) do
    numbers[i] = record and tonumber(string.match(record, '^%d+,(%d+)')) or 0
  end
  return numbers
end

-- Both come in the order of their sequences; tells how many of each are among the first `count`.
local function merge(listed, back, weight, count)
  local numbers = numbersOf(listed)
  local i, j = 0, 0
  while i + j < count and (i < #listed or j < #back / 2) do
    local rank = back[2 * j + 2]
    if rank and (i == #listed or tonumber(rank) < rankOf(weight, numbers[i + 1])) then
      taken[#taken + 1] = back[2 * j + 1]
      j = j + 1
    else
      taken[#taken + 1] = listed[i + 1]
      i = i + 1
    end
  end
  return i, j
end

local function takeFrom(weight, count)
  local list = ready .. ':' .. weight
  local listed = redis.call('LRANGE', list, 0, count - 1)
  local back = redis.call('ZRANGEBYSCORE', returned, rankOf(weight, 0),
    string.format('(%.0f', rankOf(weight + 1, 0)), 'WITHSCORES', 'LIMIT', 0, count)
  local ofListed, ofBack = #listed, 0
  if #back == 0 then
    for i = 1, #listed do taken[#taken + 1] = listed[i] end
  elseif #listed == 0 then
    for i = 1, #back, 2 do taken[#taken + 1] = back[i] end
    ofBack = #back / 2
  else
    ofListed, ofBack = merge(listed, back, weight, count)
  end
  if ofListed > 0 then redis.call('LTRIM', list, ofListed, -1) end
  if redis.call('EXISTS', list) == 0 then redis.call('ZREM', weights, weight) end
  if ofBack > 0 then redis.call('ZREMRANGEBYRANK', returned, 0, ofBack - 1) end
end

reclaim(now, leaseMs)
promote()
while #taken < most do
  local weight = lowestWeight()
  if not weight then break end
  takeFrom(weight, most - #taken)
end

local nextDue = redis.call('ZRANGE', scheduled, 0, 0, 'WITHSCORES')[2]
local reply = { nextDue and math.max(0, nextDue - now) or -1 }
if #taken == 0 then return reply end

local grants, bytes = {}, 0
for i, record in ipairs(redis.call('HMGET', items, unpack(taken))) do
  if record then
    local attempts, number, weight = parse(record)
    if bytes > 0 and bytes + #record > mostBytes then
      redis.call('ZADD', returned, rankOf(weight, number), taken[i])
    else
      grants[#grants + 1] = taken[i]
      grants[#grants + 1] = (attempts + 1) .. ',' .. number
      reply[#reply + 1] = taken[i]
      reply[#reply + 1] = record
    end
    bytes = bytes + #record
  end
end
if #grants > 0 then
  redis.call('HSET', held .. ':' .. taker, unpack(grants))
  redis.call('ZADD', takers, now + leaseMs, taker)
end
if somethingIsReady() then signal() end
return reply
