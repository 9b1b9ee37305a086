-- Which server has this key: its id changes with every start. A script, since the client of a Cluster
-- sends a command without keys to any node.
--
-- KEYS   [1] a key
-- result the id

return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or 'unknown'
