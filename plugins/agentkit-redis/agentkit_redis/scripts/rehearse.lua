-- Run each kind of write that the other scripts do, on a key that is gone afterwards.
-- A script is not rolled back: a user who may not run one of them is to be found out here.
-- KEYS: a key that nothing else uses.
local key = KEYS[1]
redis.call('DEL', key)
redis.call('HSET', key, 'a', 1)
redis.call('HSETNX', key, 'b', 1)
redis.call('HINCRBY', key, 'a', 1)
redis.call('HDEL', key, 'a', 'b')
redis.call('ZADD', key, 0, 'a')
redis.call('ZREM', key, 'a')
redis.call('XADD', key, '1-0', 'a', 1)
redis.call('XDEL', key, '1-0')
redis.call('DEL', key)
return 1
