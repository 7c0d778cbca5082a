import type { Clock } from '@remora/base';
import type { EventStream } from '../api-types.ts';
import type { LiveTopic } from '../json/history.ts';
import { type LiveSourcesDeps, liveSources } from './live-sources.ts';
import { LiveStream } from './live-stream.ts';
import { TopicFeed } from './topic-feed.ts';

/** All topics. */
export const LIVE_TOPICS: readonly LiveTopic[] = ['overview', 'nodes', 'operators', 'schedulers', 'ranges', 'now'];

/** The live data of a gateway, for all of its clients. */
export class LiveHub {
  readonly #feeds: ReadonlyMap<LiveTopic, TopicFeed<object>>;

  constructor({ clock, ...deps }: LiveSourcesDeps & { readonly clock: Clock }) {
    const sources = liveSources(deps);
    this.#feeds = new Map(LIVE_TOPICS.map((topic) => [topic, new TopicFeed(clock, sources[topic])]));
  }

  /** The events of these topics. `check` throws if the caller may not look any more. */
  events(topics: readonly LiveTopic[], check: () => void): EventStream {
    const feeds = topics.flatMap((topic) => this.#feeds.get(topic) ?? []);
    return (sink) => new LiveStream({ feeds, check }, sink).begin();
  }
}
