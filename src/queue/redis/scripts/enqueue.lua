-- Adds items. A group is one call of enqueue or enqueueMany: taken whole or refused whole.
--
-- KEYS   see shared.lua
-- ARGV   [1] the most that may wait, 0 for any number
--        then per group its size, and per item of it: id, weight, delay in ms, rest of the record
-- result { now, how many wait, how many of them are new, then per item:
--        its sequence, "full", or the record of the item that has this id already }

guard()
local most = tonumber(ARGV[1])
local now = time()
-- A server that forgot its data must not give a sequence again that somebody still holds a take of.
local number = tonumber(redis.call('GET', sequence) or now)
local before = countReady() + redis.call('ZCARD', scheduled)
local added = 0
local inOrder = {} -- weight → ids for its list
local earliest = false
local reply = { now, 0, 0 }

local function isFull(first, size)
  if most == 0 then return false end
  local fresh, seen = 0, {}
  for at = first, first + (size - 1) * 4, 4 do
    local id = ARGV[at]
    if not seen[id] and redis.call('HEXISTS', items, id) == 0 then fresh = fresh + 1 end
    seen[id] = true
  end
  return fresh > 0 and before + added + fresh > most
end

-- Counts the take that is under way, which the record does not.
local function recordOf(id)
  local record = redis.call('HGET', items, id)
  for _, taker in ipairs(redis.call('ZRANGE', takers, 0, -1)) do
    local token = redis.call('HGET', held .. ':' .. taker, id)
    if token then return counted(record, token) end
  end
  return record
end

local function add(id, weight, delay, rest)
  local dueAt = delay == '0' and '' or now + delay
  local record = '0,' .. (number + 1) .. ',' .. weight .. ',' .. now .. ',' .. dueAt .. ',' .. rest
  if redis.call('HSETNX', items, id, record) == 0 then return recordOf(id) end
  number = number + 1
  added = added + 1
  if dueAt == '' then
    local ids = inOrder[weight]
    if not ids then
      ids = {}
      inOrder[weight] = ids
    end
    ids[#ids + 1] = id
  else
    redis.call('ZADD', scheduled, dueAt, id)
    earliest = earliest or redis.call('ZRANK', scheduled, id) == 0
  end
  return number
end

local guarded = {}
local function guardList(weight)
  if not guarded[weight] then redis.call('LLEN', ready .. ':' .. weight) end
  guarded[weight] = true
end

local at = 2
while at <= #ARGV do
  for item = at + 1, at + tonumber(ARGV[at]) * 4, 4 do guardList(ARGV[item + 1]) end
  at = at + 1 + tonumber(ARGV[at]) * 4
end

at = 2
while at <= #ARGV do
  local size = tonumber(ARGV[at])
  local full = isFull(at + 1, size)
  for item = at + 1, at + size * 4, 4 do
    reply[#reply + 1] = full and 'full'
      or add(ARGV[item], ARGV[item + 1], ARGV[item + 2], ARGV[item + 3])
  end
  at = at + 1 + size * 4
end

if added > 0 then redis.call('SET', sequence, number) end
for weight, ids in pairs(inOrder) do
  local list = ready .. ':' .. weight
  for first = 1, #ids, atOnce do
    redis.call('RPUSH', list, unpack(ids, first, math.min(first + atOnce - 1, #ids)))
  end
  redis.call('ZADD', weights, weight, weight)
end
if earliest or next(inOrder) then signal() end
reply[2] = before + added
reply[3] = added
return reply
