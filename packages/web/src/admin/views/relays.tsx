/** Other relays: how they are, why they fail, and the mail that waits for them. */
import { Listed, useList } from '../list.tsx';
import { attempt } from '../notice.ts';
import { Button, count, Heading, Id, Name, Table, When } from '../parts.tsx';
import { offerBlock } from '../route.ts';
import { call } from '../session.ts';
import { causeOf } from './failure-cause.ts';

interface Peer {
  readonly relay_id: string;
  readonly name: string;
  readonly state: keyof typeof states;
  readonly since: number | null;
  readonly connected_processes: number;
  readonly mail_waiting: number;
  /** Whether there are more than those. */
  readonly mail_more: boolean;
  readonly mail_oldest: number | null;
  readonly last_ok: number | null;
  readonly last_error: string | null;
  readonly next_try: number | null;
  readonly block_reason: string | null;
}

interface Peers {
  readonly items: readonly Peer[];
  readonly next?: string;
  readonly processes: number;
  readonly unlocated: {
    readonly messages: number;
    readonly more: boolean;
    readonly oldest: number;
  } | null;
}

const states = {
  connected: 'Connected',
  failing: 'Failing',
  disconnected: 'No connection; the last attempt did not fail, or there was none',
  disabled: 'Disabled by the registry',
  suspended: 'Suspended by the registry',
  blocked: 'Blocked by you',
  unlisted: 'Not in the registry',
} as const;

export function Relays() {
  const list = useList<Peer, Peers>('peer/list');
  const retry = (relay_id: string) =>
    attempt(async () => {
      const { is_retried } = await call<{ readonly is_retried: boolean }>('peer/retry', {
        relay_id,
      });
      await list.reload();
      return is_retried
        ? `${relay_id} is tried again within a minute.`
        : `${relay_id} does not fail: there is nothing to try again.`;
    });
  const { unlocated, processes = 1 } = list.page ?? {};
  return (
    <>
      <Heading>Relays</Heading>
      {unlocated != null && (
        <p>
          {unlocated.messages === 1
            ? '1 message waits'
            : `${count(unlocated.messages)}${unlocated.more ? ' or more' : ''} messages wait`}{' '}
          for accounts whose relay is not known, the oldest since <When at={unlocated.oldest} />.
        </p>
      )}
      <Listed list={list}>
        <Table
          caption="Other relays, in the order of their IDs"
          items={list.items}
          keyOf={(one) => one.relay_id}
          none="No other relay is known."
          columns={[
            {
              title: 'Relay',
              cell: ({ name, relay_id }) => (
                <>
                  <Name text={name} /> <Id text={relay_id} />
                </>
              ),
            },
            { title: 'State', cell: (peer) => <State peer={peer} processes={processes} /> },
            {
              title: 'Mail waiting',
              isNumber: true,
              cell: ({ mail_waiting, mail_more, mail_oldest }) => (
                <>
                  {count(mail_waiting)}
                  {mail_more && ' or more'}
                  {mail_oldest !== null && (
                    <small>
                      since <When at={mail_oldest} />
                    </small>
                  )}
                </>
              ),
            },
            { title: 'Last good', cell: ({ last_ok }) => <When at={last_ok} /> },
            {
              title: 'Do',
              cell: ({ relay_id, state }) => (
                <div class="row">
                  {state === 'failing' && (
                    <Button about={relay_id} work={() => retry(relay_id)}>
                      Try again now
                    </Button>
                  )}
                  {state !== 'blocked' && (
                    <Button about={relay_id} work={() => offerBlock('relay', relay_id)}>
                      Block …
                    </Button>
                  )}
                </div>
              ),
            },
          ]}
        />
      </Listed>
      <Button work={list.reload}>Read again</Button>
    </>
  );
}

function State({ peer, processes }: { readonly peer: Peer; readonly processes: number }) {
  const { state, since, connected_processes, last_error, next_try, block_reason } = peer;
  const isPart = state === 'connected' && connected_processes < processes;
  return (
    <div class="state">
      <strong class={state === 'failing' ? 'fault' : ''}>{states[state] ?? state}</strong>
      {isPart && ` with ${connected_processes} of ${processes} processes`}
      {since !== null && (
        <small>
          since <When at={since} />
        </small>
      )}
      {state === 'failing' && (
        <>
          <span>{causeOf(last_error ?? '')}</span>
          {last_error !== null && (
            <small>
              It said: <Name text={last_error} />
            </small>
          )}
          <small>
            next try: <When at={next_try} />
          </small>
        </>
      )}
      {block_reason !== null && block_reason !== '' && (
        <small>
          reason: <Name text={block_reason} />
        </small>
      )}
    </div>
  );
}
