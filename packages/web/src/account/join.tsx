import type { DeviceRequest } from '@posthouse/client';
import { isClientError, isRefusal } from '@posthouse/client/web';
import { useEffect, useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import { joinKey } from '../router.ts';
import type { App } from '../state/app.ts';
import { Carry, DeviceId, Take } from './carry.tsx';
import { faultText } from './faults.ts';
import { t } from './text.ts';

/**
 * The new device's side of joining an account (03 §11.2). It survives a reload: the store keeps the
 * device's keys, and `joinKey` the account's public key, so that the request is the same again.
 */
export function Join({ app, onEnd }: { readonly app: App; readonly onEnd: () => void }) {
  const accountPublicKey = joinKey.value;
  const [request, setRequest] = useState<DeviceRequest | undefined>();
  const [deviceId, setDeviceId] = useState('');
  const [fault, setFault] = useState('');
  const [isChecking, setChecking] = useState(false);
  const cancel = () => {
    joinKey.value = '';
    // The device's keys were made for this request only. What cannot be discarded is used again.
    app.client.discardSetUp().catch(() => undefined);
    onEnd();
  };
  useEffect(() => {
    setRequest(undefined);
    if (accountPublicKey === '') return;
    const make = async () => {
      try {
        const made = await app.client.requestDevice(accountPublicKey);
        setDeviceId((await loadCryptography()).deviceIdOf(app.config, made));
        setRequest(made);
      } catch (error) {
        joinKey.value = '';
        setFault(isClientError(error, 'invalid_input') ? t.notALink : faultText(error));
      }
    };
    void make();
  }, [accountPublicKey]);
  const take = async (link: string) => {
    const key = keyOf(link);
    setFault(key === '' ? t.notALink : '');
    joinKey.value = key;
  };
  const answer = async (text: string) => {
    setFault('');
    setChecking(true);
    try {
      const approval = await (await loadCryptography()).readApproval(app.config, text);
      const account = await app.client.completeDevice(approval, { accountPublicKey });
      joinKey.value = '';
      await app.use(account);
    } catch (error) {
      setFault(answerFault(error));
    } finally {
      setChecking(false);
    }
  };
  return (
    <section aria-labelledby="join">
      <h2 id="join" tabIndex={-1}>
        {t.join}
      </h2>
      {accountPublicKey === '' && (
        <>
          <p>{t.joinText}</p>
          <Take label={t.joinCode} onText={take} />
        </>
      )}
      {request !== undefined && (
        <>
          <p>{t.joinSteps}</p>
          <Carry value={JSON.stringify(request)} label={t.request} file="device-request.json" />
          <p>{t.compare}</p>
          <DeviceId id={deviceId} />
          <p>{t.answer}</p>
          <Take label={t.approval} onText={answer} />
        </>
      )}
      <p role="status">{isChecking ? t.joining : ''}</p>
      <p role="alert" class="fault">
        {fault}
      </p>
      <button type="button" class="plain" onClick={cancel}>
        {t.stopJoining}
      </button>
    </section>
  );
}

/** The account's public key in a link of another device, or as it stands; empty if there is none. */
function keyOf(link: string): string {
  const [, found = ''] = /(?:^|#device=)([\w-]{44})$/.exec(link.trim()) ?? [];
  return found;
}

function answerFault(error: unknown): string {
  if (isClientError(error, 'device_removed') || isRefusal(error, 'device_unknown')) {
    return t.removedAgain;
  }
  if (isClientError(error, 'wrong_device')) return t.otherDevice;
  return isClientError(error, 'verification_failed') ? t.notAnAnswer : faultText(error);
}
