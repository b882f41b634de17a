import { expect, test, vi } from 'vitest';
import type { RelayContext } from '../../src/context.ts';
import { receiveHot } from '../../src/messages/hot-receive.ts';
import type { Receipt } from '../../src/messages/receipt.ts';

test('decision 0024: without appends of deliveries, the short way looks up and verifies nothing', async () => {
  const appends = vi.fn(() => false);
  // Anything else of it would throw.
  const context = { storage: { appends } } as unknown as RelayContext;
  expect(await receiveHot(context, {} as Receipt)).toBeUndefined();
  expect(appends).toHaveBeenCalledOnce();
});
