import { type Logger, silentLogger } from '@remora/base';

/** For clients without a logger: an error becomes a warning of the process, so that none goes unseen. */
export const warningLogger: Logger = loggerWith({});

function loggerWith(common: Readonly<Record<string, unknown>>): Logger {
  return {
    ...silentLogger,
    error: (fields, message) => {
      process.emitWarning(`${message} ${JSON.stringify({ ...common, ...fields })}`, 'RemoraWarning');
    },
    child: (fields) => loggerWith({ ...common, ...fields }),
  };
}
