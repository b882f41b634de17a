/** Codes with which new accounts come to be at home here. */
import { useState } from 'preact/hooks';
import { Listed, useList } from '../list.tsx';
import { attempt, confirm } from '../notice.ts';
import { Button, count, Field, Heading, Id, Long, Table, When } from '../parts.tsx';
import { call } from '../session.ts';

interface Invite {
  readonly id: string;
  readonly uses: number;
  readonly used: number;
  readonly note: string;
  readonly created_at: number;
  readonly expires_at: number;
}

interface NewInvite extends Invite {
  readonly code: string;
  /** The relay's setting. */
  readonly registration: string;
}

export function Invites() {
  const list = useList<Invite>('invite/list');
  const [made, setMade] = useState<NewInvite>();
  const revoke = (id: string) =>
    attempt(async () => {
      const lines = [`Invite ${id}`, 'Accounts that it let in stay.'];
      if (!(await confirm({ title: 'Revoke this invite?', lines, yes: 'Revoke' }))) return;
      await call('invite/revoke', { id });
      if (made?.id === id) setMade(undefined);
      await list.reload();
      return `Invite ${id} is revoked.`;
    });
  return (
    <>
      <Heading>Invites</Heading>
      <NewInviteForm
        made={async (invite) => {
          setMade(invite);
          await list.reload();
        }}
      />
      {made !== undefined && <Code key={made.id} invite={made} hide={() => setMade(undefined)} />}
      <Listed list={list}>
        <Table
          caption="Invites, the newest last"
          items={list.items}
          keyOf={(one) => one.id}
          none="There is no invite."
          columns={[
            { title: 'Invite', cell: ({ id }) => <Id text={id} /> },
            { title: 'Used', cell: ({ used, uses }) => `${count(used)} of ${count(uses)}` },
            { title: 'Note', cell: ({ note }) => <Long text={note} /> },
            { title: 'Made', cell: ({ created_at }) => <When at={created_at} /> },
            { title: 'Until', cell: ({ expires_at }) => <When at={expires_at} /> },
            {
              title: 'Do',
              cell: ({ id }) => (
                <Button kind="danger" about={id} work={() => revoke(id)}>
                  Revoke
                </Button>
              ),
            },
          ]}
        />
      </Listed>
    </>
  );
}

function NewInviteForm({ made }: { readonly made: (invite: NewInvite) => Promise<void> }) {
  const [uses, setUses] = useState('1');
  const [days, setDays] = useState('7');
  const [note, setNote] = useState('');
  const create = () =>
    attempt(async () => {
      const params = { uses: Number(uses), days: Number(days), note };
      const invite = await call<NewInvite>('invite/create', params);
      setNote('');
      await made(invite);
      return 'The invite is made. Its code is shown once.';
    });
  return (
    <section>
      <h2>Make an invite</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <Field
          label="Accounts that it lets in"
          type="number"
          {...{ value: uses, onValue: setUses, min: 1, max: 1_000_000, required: true }}
        />
        <Field
          label="Days until it expires"
          type="number"
          {...{ value: days, onValue: setDays, min: 1, max: 3_650, required: true }}
        />
        <Field label="Note" help="For this list." value={note} onValue={setNote} />
        <button type="submit" class="main">
          Make an invite
        </button>
      </form>
    </section>
  );
}

function Code({ invite, hide }: { readonly invite: NewInvite; readonly hide: () => void }) {
  const [isCopied, setCopied] = useState(false);
  const { code, registration, expires_at, uses } = invite;
  const copy = () =>
    attempt(async () => {
      await navigator.clipboard.writeText(code);
      setCopied(true);
      return 'The code is copied.';
    });
  return (
    <section class="code" aria-label="The new code">
      <p>
        <code>{code}</code>
      </p>
      <p>
        It is not stored, and cannot be shown again. Whoever has it can use it: {count(uses)}{' '}
        {uses === 1 ? 'account' : 'accounts'}, until <When at={expires_at} />.
      </p>
      {registration !== 'invite' && (
        <p class="fault">
          The setting registration is “{registration}”: codes count with “invite” only.
        </p>
      )}
      <div class="row">
        <Button kind="main" work={copy}>
          {isCopied ? 'Copied' : 'Copy'}
        </Button>
        <Button work={hide}>I have it</Button>
      </div>
    </section>
  );
}
