import { type StorageStatus, storageStatus } from '@posthouse/client/web';
import type { AccountProfile } from '@posthouse/protocol';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Blocked } from '../account/blocked.tsx';
import { Devices } from '../account/devices.tsx';
import { Erase } from '../account/erase.tsx';
import { Export } from '../account/export.tsx';
import { Home } from '../account/home.tsx';
import { LockPage } from '../account/lock.tsx';
import { l } from '../account/lock-text.ts';
import { Notifications } from '../account/notifications.tsx';
import { n } from '../account/notify-text.ts';
import { p as personText } from '../account/person-text.ts';
import { s as pageText } from '../account/settings-text.ts';
import { t as deviceText } from '../account/text.ts';
import { Action, Field, Form, Screen } from '../parts/controls.tsx';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import { ownChanges, ownProfileChanged } from '../state/profiles.ts';
import { text } from '../text/index.ts';
import { own } from '../text/own.ts';

/** The pages below the settings, by the name in the route. */
const pages = {
  ...{ devices: Devices, home: Home, lock: LockPage, notify: Notifications },
  ...{ blocked: Blocked, export: Export, erase: Erase },
} as const;
const titles: Readonly<Record<keyof typeof pages, string>> = {
  devices: deviceText.devices,
  home: pageText.home,
  lock: l.lock,
  notify: n.title,
  blocked: personText.blocked,
  export: pageText.exporting,
  erase: pageText.erase,
};

/** The account, its backup, and what the browser and the relay do with it. */
export function Settings({ app, page }: { readonly app: App; readonly page?: string | undefined }) {
  const Page = pages[page as keyof typeof pages];
  if (Page !== undefined) return <Page app={app} />;
  return (
    <Screen title={text.settings}>
      <Profile app={app} />
      <h2>{own.account}</h2>
      <dl>
        <dt>{own.yourId}</dt>
        <dd class="id">{app.account.id}</dd>
      </dl>
      <p>{app.hasBackup.value ? own.backedUp : text.noBackup}</p>
      <button type="button" onClick={() => show({ screen: 'backup' })}>
        {text.backup}
      </button>
      <nav class="pages" aria-label={text.settings}>
        {Object.entries(titles).map(([name, title]) => (
          <button
            key={name}
            type="button"
            class="plain"
            onClick={() => show({ screen: 'settings', page: name })}
          >
            {title}
          </button>
        ))}
      </nav>
      <Storage />
    </Screen>
  );
}

function Profile({ app }: { readonly app: App }) {
  const [name, setName] = useState('');
  const [isPublic, setPublic] = useState(false);
  /** What other apps of this person published, which stays; absent until it was read. */
  const [kept, setKept] = useState<Partial<AccountProfile> | undefined>();
  /** What was not published yet: a change elsewhere does not take its place. */
  const edited = useRef<ReadonlySet<'name' | 'isPublic'>>(new Set());
  const edit = (field: 'name' | 'isPublic') => {
    edited.current = new Set([...edited.current, field]);
  };
  const changes = ownChanges.value;
  useEffect(() => {
    void app.try(async () => {
      const profile = await app.account.profiles.resolve(app.account.id);
      if (!edited.current.has('name')) setName(profile?.nickname ?? '');
      if (!edited.current.has('isPublic')) setPublic(profile?.public_discovery ?? false);
      setKept(profile ?? {});
    });
  }, [changes]);
  const publish = async () => {
    const { $type: _t, account: _a, updated_at: _u, device_signature: _s, ...others } = kept ?? {};
    const fields = { ...others, nickname: name.trim(), public_discovery: isPublic };
    const sent = edited.current;
    edited.current = new Set();
    try {
      setKept(await app.account.profiles.publish(fields));
    } catch (error) {
      edited.current = new Set([...sent, ...edited.current]);
      throw error;
    }
    ownProfileChanged();
  };
  return (
    <Form label={text.save} canSubmit={kept !== undefined} work={() => app.try(publish)}>
      <Field
        {...{ label: own.profile, help: own.profileHelp, value: name }}
        onValue={(value) => {
          edit('name');
          setName(value);
        }}
        autoComplete="nickname"
        disabled={kept === undefined}
      />
      <p>
        <label>
          <input
            type="checkbox"
            disabled={kept === undefined}
            checked={isPublic}
            onChange={({ currentTarget }) => {
              edit('isPublic');
              setPublic(currentTarget.checked);
            }}
          />{' '}
          {own.discoverable}
        </label>
      </p>
    </Form>
  );
}

function Storage() {
  const [status, setStatus] = useState<StorageStatus | undefined>();
  const [isRefused, setRefused] = useState(false);
  useEffect(() => {
    void storageStatus().then(setStatus);
  }, []);
  const ask = async () => {
    const answer = await storageStatus({ ask: true });
    setStatus(answer);
    setRefused(!answer.persisted);
  };
  return (
    <>
      <h2>{own.storage}</h2>
      <p role="status">
        {status?.persisted ? own.persisted : isRefused ? own.refusedPersist : own.notPersisted}
      </p>
      {status?.persisted === false && !isRefused && <Action work={ask}>{own.askPersist}</Action>}
    </>
  );
}
