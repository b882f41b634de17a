import { EventEmitter } from 'node:events';
import { vi } from 'vitest';

/** The connection of a request that a test makes up: it notes what is done to it. */
export class FakeSocket extends EventEmitter {
  destroyed = false;
  readonly destroy = vi.fn();
  readonly pause = vi.fn();
  readonly resume = vi.fn();
}
