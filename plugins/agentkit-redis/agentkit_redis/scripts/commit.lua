-- Apply one change: everything is looked at first and written last, because a script that fails
-- in the middle is not rolled back. The first write is one that the server refuses when its
-- memory is full; once it was taken, the server takes the others too.
--
-- KEYS: head, versions, proposals, definitions, tools, revisions, events.
-- ARGV: format, expected version, proposal id, record, channel, place of the last event that the
--       change knows, hash of that event, number of upserts, of removals, of events, 1 where
--       replicas are waited for; then name, digest, body and origin of each upsert, the names to
--       remove, hash and body of each event.
-- Answers {'made', version, heard} or why not: {'format', ...}, {'damaged', key},
--         {'stale', version}, {'chain', place}, {'absent', name, version}.
local head, versions, proposals, definitions, tools, revisions, events = unpack(KEYS)
local known_place, known_hash = ARGV[6], ARGV[7]
local upserts, removals, told = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local waits = ARGV[11] == '1'
local first_removal = 11 + 4 * upserts
local first_event = first_removal + removals

local held = redis.call('HMGET', head, 'format', 'version', 'stamp', 'event', 'hash')
if held[1] ~= ARGV[1] then
  return {'format', held[1] or ''}
end
local version, place = tonumber(held[2]), tonumber(held[4])
if not (version and place and held[3] and held[5]) then
  return {'damaged', head}
end

-- exactly once; a server waits for the writes of the same connection, so that there must be one
local function known(made)
  if waits then
    redis.call('HINCRBY', head, 'waits', 1)
  end
  return {'made', made, 1}
end
local made = redis.call('HGET', proposals, ARGV[3])
if made then
  return known(tonumber(made))
end
local first = tonumber(known_place) + 1
if upserts + removals == 0 and first + told - 1 <= place then
  local kept = redis.call('XRANGE', events, first, first + told - 1)
  local same = #kept == told
  for i, entry in ipairs(kept) do
    same = same and entry[2][2] == ARGV[first_event + 2 * i - 1]
  end
  if same then
    return known(version)
  end
end

-- compare
if held[2] ~= ARGV[2] then
  return {'stale', version}
end
if told > 0 and (known_place ~= held[4] or known_hash ~= held[5]) then
  return {'chain', place}
end
for i = 1, removals do
  if redis.call('HEXISTS', tools, ARGV[first_removal + i]) == 0 then
    return {'absent', ARGV[first_removal + i], version}
  end
end

-- whatever could fail below: a key of another type raises here, before anything is written
if redis.call('XLEN', events) ~= place then
  return {'damaged', events}
end
if redis.call('HLEN', versions) ~= version then
  return {'damaged', versions}
end
redis.call('HLEN', definitions)
redis.call('HLEN', tools)
redis.call('ZCARD', revisions)
local refusal = forbidden({
  {'XADD', events, '*', 'a', 1}, {'HSET', head, 'a', 1}, {'HSETNX', definitions, 'a', 1},
  {'HSET', tools, 'a', 1}, {'HDEL', tools, 'a'}, {'ZADD', revisions, 0, 'a'},
  {'HSET', versions, 'a', 1}, {'HSET', proposals, 'a', 1},
})
if refusal then
  return refusal
end

-- swap; events first, for theirs is the only command that may refuse its arguments
for i = 1, told do
  local at = first_event + 2 * i
  local id = string.format('%.0f-0', place + i)
  redis.call('XADD', events, id, 'hash', ARGV[at - 1], 'body', ARGV[at])
end
if told > 0 then
  redis.call('HSET', head, 'event', string.format('%.0f', place + told),
    'hash', ARGV[first_event + 2 * told - 1])
end
if upserts + removals > 0 then
  version = version + 1
  local number = string.format('%.0f', version)
  local revision = '\0' .. string.format('%016.0f', version)
  for i = 1, upserts do
    local at = 11 + 4 * i
    local name, digest, body, origin = ARGV[at - 3], ARGV[at - 2], ARGV[at - 1], ARGV[at]
    local before = redis.call('HGET', tools, name)
    local order = before and string.match(before, '^%d+ %d+ ') or number .. ' ' .. i .. ' '
    redis.call('HSETNX', definitions, digest, body)
    redis.call('HSET', tools, name, order .. digest .. ' ' .. origin)
    redis.call('ZADD', revisions, 0, name .. revision)
  end
  for i = 1, removals do
    local name = ARGV[first_removal + i]
    redis.call('ZADD', revisions, 0, name .. revision)
    redis.call('HDEL', tools, name)
  end
  local stamp = redis.sha1hex(held[3] .. ARGV[4])
  redis.call('HSET', versions, number, stamp .. ' ' .. ARGV[4])
  redis.call('HSET', proposals, ARGV[3], number)
  redis.call('HSET', head, 'version', number, 'stamp', stamp)
end

-- the hint; a user who may not publish has committed all the same
local heard = redis.pcall('PUBLISH', ARGV[5], string.format('%.0f', version))
return {'made', version, type(heard) == 'table' and heard.err and 0 or 1}
