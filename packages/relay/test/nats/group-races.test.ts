import { describe } from 'vitest';
import { describeRaces } from '../groups/races.ts';
import { TestNats, withoutNats } from '../support/nats.ts';
import { FrontDoor } from '../support/relay.ts';

describe.skipIf(withoutNats !== undefined)(
  `many at once, at two processes (${withoutNats ?? 'real'})`,
  () => {
    describeRaces(async () => {
      const parts = new AsyncDisposableStack();
      const nats = parts.use(await TestNats.start());
      const first = parts.use(
        await FrontDoor.start({
          public: { https: ['https://127.0.0.1:8443/svc/v1'] },
          host: { groups: true },
          bus: { nats: nats.url },
        }),
      );
      const second = parts.use(await first.beside());
      return { doors: [first, second], [Symbol.asyncDispose]: () => parts.disposeAsync() };
    });
  },
);
