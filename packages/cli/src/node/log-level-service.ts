import { LOG_LEVELS, type Logger, type LogLevel, ServiceError } from '@remora/base';
import { nodeLogLevel, type RpcRegistry } from '@remora/protocol';

/** The level of a node's log, which can be changed while it runs. */
export interface LogLevelSwitch {
  level: LogLevel;
}

const CHANGED = 'the log level is changed';

/** Lets operators change the level of this node's log. Without a switch (in a simulation) that is refused. */
export function serveLogLevel(
  registry: RpcRegistry,
  { logger, logLevel }: { readonly logger: Logger; readonly logLevel: LogLevelSwitch | undefined },
): void {
  registry.handle(nodeLogLevel, ({ level }, _context, done) => {
    if (logLevel === undefined)
      return done(new ServiceError('UNIMPLEMENTED', 'the log of this node has no level'), undefined);
    const wanted = LOG_LEVELS.find((each) => each === level);
    if (level !== '' && wanted === undefined) {
      const message = `the log level ${JSON.stringify(level.slice(0, 100))} is unknown; it is one of ${LOG_LEVELS.join(', ')}`;
      return done(new ServiceError('INVALID_ARGUMENT', message), undefined);
    }
    const before = logLevel.level;
    if (wanted !== undefined && wanted !== before) {
      const isQuieter = LOG_LEVELS.indexOf(wanted) > LOG_LEVELS.indexOf(before);
      // At the level that shows it.
      if (isQuieter) logger.warn({ before, now: wanted }, CHANGED);
      logLevel.level = wanted;
      if (!isQuieter) logger.warn({ before, now: wanted }, CHANGED);
    }
    done(undefined, { level: logLevel.level, before });
  });
}
