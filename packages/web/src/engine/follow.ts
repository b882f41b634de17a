import type { AccountEvent } from '@posthouse/client';
import type { WorkerAccount } from '@posthouse/client/web';
import { delayAfter } from './retry-delay.ts';
import { pageWake } from './wake.ts';

/**
 * Follows the account for as long as the page lives. If following ends with an error, it begins again after
 * a while, and `begun` reads what was missed meanwhile.
 *
 * @param failed is told of each error; returns whether to begin again
 */
export function followAccount(
  account: WorkerAccount,
  {
    listener,
    failed,
    begun,
    later = setTimeout,
  }: {
    readonly listener: (event: AccountEvent) => void;
    readonly failed: (error: unknown) => boolean;
    readonly begun: () => void;
    readonly later?: (work: () => void, milliseconds: number) => unknown;
  },
): void {
  let failures = 0;
  const follow = () => {
    account.subscribe(
      (event) => {
        // Each try begins with an event, also one that fails.
        if (event.kind === 'connection' && event.state === 'connected') failures = 0;
        listener(event);
      },
      {
        wake: pageWake,
        onError: (error) => {
          if (failed(error)) later(again, delayAfter(failures));
          failures += 1;
        },
      },
    );
  };
  const again = () => {
    follow();
    begun();
  };
  follow();
}
