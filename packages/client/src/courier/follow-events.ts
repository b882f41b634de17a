import type { Account } from '../account.ts';
import type { AccountEvent } from '../events.ts';

/** Yields the events to print: of the connection, only that it was made or lost. */
export async function* followEvents(
  account: Account,
  signal: AbortSignal,
  options: { readonly reader?: string | undefined } = {},
): AsyncGenerator<AccountEvent> {
  let last: string | undefined;
  for await (const event of account.follow({ ...options, signal })) {
    if (event.kind === 'connection') {
      if (event.state === 'connecting' || (event.state === last && last === 'disconnected'))
        continue;
      last = event.state;
    }
    yield event;
  }
}
