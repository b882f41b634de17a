import type { WorkerAccount } from '@posthouse/client/web';
import { isClientError } from '@posthouse/client/web';
import { useEffect, useState } from 'preact/hooks';
import { openClient } from '../engine/open-client.ts';
import { Fault } from '../parts/fault.tsx';
import { shared } from '../router.ts';
import type { App } from '../state/app.ts';
import { visitorStore } from '../state/stores.ts';
import { Preview } from './preview.tsx';
import { text } from './text.ts';

/**
 * A channel, read without an account: relays give channels to devices of accounts (06 §8), so the page
 * makes one that serves for nothing else, and uses it for every channel that is read in this browser.
 */
export function ReadAsVisitor({ app }: { readonly app: App }) {
  const [account, setAccount] = useState<WorkerAccount | undefined>();
  const [fault, setFault] = useState<unknown>('');
  const { config } = app;
  useEffect(() => {
    if (config.needsInvite) return setFault(text.needsInvite);
    const opening = openClient(config, { failed: setFault, store: visitorStore });
    const open = async () => {
      const client = await opening;
      const found = await client.account().catch((error: unknown) => {
        if (!isClientError(error, 'not_set_up')) throw error;
        return client.setUp({ relayId: config.relayId });
      });
      setAccount(found);
    };
    open().catch(setFault);
    return () => {
      opening.then((client) => client.close()).catch(() => undefined);
    };
  }, []);
  const { address = '' } = shared.value ?? {};
  return (
    <main class="welcome visitor">
      <h1>{text.title}</h1>
      {account !== undefined && (
        <Preview key={address} account={account} address={address}>
          {() => null}
        </Preview>
      )}
      {account === undefined && fault === '' && <p role="status">{text.reading}</p>}
      <div role="alert" class="fault">
        <Fault error={fault} />
      </div>
      <button
        type="button"
        onClick={() => {
          app.wantsAccount.value = true;
        }}
      >
        {text.toFollow}
      </button>
      {account !== undefined && (
        <p>
          <small>{text.visitor}</small>
        </p>
      )}
    </main>
  );
}
