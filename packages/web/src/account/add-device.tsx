import type { DeviceApproval } from '@posthouse/client';
import { isClientError } from '@posthouse/client/web';
import { useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import { Field } from '../parts/controls.tsx';
import { joinLink } from '../router.ts';
import type { App } from '../state/app.ts';
import { withKey } from './account-key.tsx';
import { Carry, DeviceId, Take } from './carry.tsx';
import type { ReadRequest } from './cryptography.ts';
import { faultText } from './faults.ts';
import { useWork } from './sub-screen.tsx';
import { t } from './text.ts';

/** The old device's side of a new device that joins (03 §11.2): read its request, compare, approve. */
export function AddDevice({
  app,
  onAdded,
}: {
  readonly app: App;
  readonly onAdded: (deviceId: string, name: string) => Promise<void>;
}) {
  const [isOpen, setOpen] = useState(false);
  const [read, setRead] = useState<ReadRequest | undefined>();
  const [approval, setApproval] = useState<DeviceApproval | undefined>();
  const [name, setName] = useState('');
  const { isBusy, run, report, setFault } = useWork();
  const end = () => {
    setOpen(false);
    setRead(undefined);
    setApproval(undefined);
    setName('');
  };
  const take = async (text: string) => {
    await run(
      '',
      async () => {
        const found = await (await loadCryptography()).readRequest(app.config, text);
        const { account, expires_at: end } = found.request.certificate;
        if (account !== app.account.id) return setFault(t.otherAccount);
        if (end <= Date.now() / 1_000) return setFault(t.expiredRequest);
        setRead(found);
      },
      { words: requestFault },
    );
  };
  const approve = async ({ request, deviceId }: ReadRequest) => {
    app.notice.value = '';
    await run(t.approving, async () => {
      setApproval(await app.account.devices.approve(request, withKey()));
      await onAdded(deviceId, name.trim());
    });
  };
  const refuse = () => {
    end();
    app.notice.value = t.refused;
  };
  if (!isOpen) {
    return (
      <button type="button" onClick={() => setOpen(true)}>
        {t.addDevice}
      </button>
    );
  }
  return (
    <section aria-labelledby="add-device">
      <h2 id="add-device">{t.addDevice}</h2>
      {read === undefined && (
        <>
          <p>{t.addText}</p>
          <Carry value={joinLink(app.account.publicKey)} label={t.joinLink} />
          <p>{t.addRequest}</p>
          <Take label={t.request} onText={take} />
        </>
      )}
      {read !== undefined && approval === undefined && (
        <>
          <p>{t.ask}</p>
          <DeviceId id={read.deviceId} />
          <Field {...{ label: t.nameOfDevice, value: name, onValue: setName }} />
          <div class="row">
            <button type="button" disabled={isBusy} onClick={() => void approve(read)}>
              {t.approve}
            </button>
            <button type="button" class="plain" disabled={isBusy} onClick={refuse}>
              {t.refuse}
            </button>
          </div>
        </>
      )}
      {approval !== undefined && (
        <>
          <p>{t.approved}</p>
          <Carry value={JSON.stringify(approval)} label={t.approval} file="device-answer.json" />
          <button type="button" onClick={end}>
            {t.done}
          </button>
        </>
      )}
      {report}
      {read === undefined && (
        <button type="button" class="plain" onClick={end}>
          {t.stopAdding}
        </button>
      )}
    </section>
  );
}

function requestFault(error: unknown): string {
  return isClientError(error, 'verification_failed') ? t.notARequest : faultText(error);
}
