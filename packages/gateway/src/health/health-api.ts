import { type Clock, ServiceError, type Timer } from '@remora/base';
import type { health as pb } from '@remora/protocol/etcd';
import type { CallDone, CallInfo, StreamHandler, StreamSink } from '../calls.ts';

export interface HealthApiDeps {
  readonly clock: Clock;
  /** Whether this node can serve clients now, as `/ready` says. */
  readonly isReady: () => boolean;
}

/** How often the status is looked at while somebody watches it. */
const LOOK_MS = 500;

const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;

/**
 * `grpc.health.v1.Health` (gRPC's health checking protocol).
 *
 * GH1. The status is that of `/ready`, for the server as a whole (the empty name), as in etcd 3.6. `Check` of any other
 *      service ends with NOT_FOUND; `Watch` of one reports SERVICE_UNKNOWN and stays open.
 * GH2. A watch gets the status at once, then each change; one timer serves all watches. The number of watches is
 *      bounded as that of all streams (`CallLimits.streamsMax`). A client that does not read gets the latest status
 *      when it reads again.
 */
export class HealthApi {
  readonly #deps: HealthApiDeps;
  readonly #watches = new Set<HealthWatch>();
  #timer: Timer | undefined;

  constructor(deps: HealthApiDeps) {
    this.#deps = deps;
  }

  check(request: pb.HealthCheckRequest, _call: CallInfo, done: CallDone<pb.HealthCheckResponse>): undefined {
    if (request.service !== '') {
      const message = `the service ${JSON.stringify(request.service.slice(0, 100))} is unknown; send an empty name`;
      throw new ServiceError('INVALID_ARGUMENT', message, { details: { etcd: 'unknownService' } });
    }
    done(undefined, { status: this.#status() });
  }

  watch(sink: StreamSink<pb.HealthCheckResponse>): StreamHandler<pb.HealthCheckRequest> {
    return new HealthWatch(sink, {
      start: (watch) => this.#start(watch),
      end: (watch) => this.#end(watch),
    });
  }

  #status(): ServingStatus {
    return this.#deps.isReady() ? SERVING : NOT_SERVING;
  }

  #start(watch: HealthWatch): void {
    this.#watches.add(watch);
    watch.report(this.#status());
    this.#timer ??= this.#lookAgain();
  }

  #end(watch: HealthWatch): void {
    this.#watches.delete(watch);
    if (this.#watches.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #lookAgain(): Timer {
    return this.#deps.clock.setTimer(LOOK_MS, () => {
      const status = this.#status();
      for (const watch of this.#watches) watch.report(status);
      this.#timer = this.#lookAgain();
    });
  }
}

type ServingStatus = pb.HealthCheckResponse_ServingStatus;

interface Watches {
  start(watch: HealthWatch): void;
  end(watch: HealthWatch): void;
}

/** GH2. */
class HealthWatch implements StreamHandler<pb.HealthCheckRequest> {
  readonly #sink: StreamSink<pb.HealthCheckResponse>;
  readonly #watches: Watches;
  #latest: ServingStatus | undefined;
  #sent: ServingStatus | undefined;
  #blocked = false;

  constructor(sink: StreamSink<pb.HealthCheckResponse>, watches: Watches) {
    this.#sink = sink;
    this.#watches = watches;
  }

  report(status: ServingStatus): void {
    this.#latest = status;
    this.#send();
  }

  onRequest({ service }: pb.HealthCheckRequest): boolean {
    if (service === '') this.#watches.start(this);
    else this.report(SERVICE_UNKNOWN);
    return true;
  }

  onDrain(): void {
    this.#blocked = false;
    this.#send();
  }

  onHalfClose(): void {}

  onClose(): void {
    this.#watches.end(this);
  }

  #send(): void {
    if (this.#blocked || this.#latest === undefined || this.#latest === this.#sent) return;
    this.#sent = this.#latest;
    this.#blocked = !this.#sink.write({ status: this.#latest });
  }
}
