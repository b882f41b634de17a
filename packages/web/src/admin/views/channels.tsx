/** Channels of this relay. */
import { useState } from 'preact/hooks';
import { Listed, useList } from '../list.tsx';
import { Button, count, Facts, Heading, Id, Name, size, Table, When } from '../parts.tsx';
import { offerBlock } from '../route.ts';
import { Opened } from './opened.tsx';

interface Channel {
  readonly channel_id: string;
  readonly name: string | null;
  readonly status: string;
  readonly owner: string;
  readonly revision: number;
  readonly sequence: number;
  readonly records: number;
  readonly bytes: number;
  readonly last_day_bytes: number;
  readonly oldest: number | null;
  readonly newest: number | null;
}

export function Channels() {
  const [opened, setOpened] = useState('');
  if (opened !== '') return <OneChannel id={opened} close={() => setOpened('')} />;
  return <ChannelList open={setOpened} />;
}

function ChannelList({ open }: { readonly open: (channel: string) => void }) {
  const list = useList<Channel>('channel/list');
  return (
    <>
      <Heading>Channels</Heading>
      <Listed list={list}>
        <Table
          caption="Channels of this relay, closed ones too, in the order of their IDs"
          items={list.items}
          keyOf={(one) => one.channel_id}
          none="There is no channel here."
          columns={[
            {
              title: 'Channel',
              cell: ({ channel_id, name }) => (
                <>
                  <Name text={name ?? ''} /> <Id text={channel_id} />
                </>
              ),
            },
            { title: 'Status', cell: ({ status }) => status },
            { title: 'Posts', cell: ({ records }) => count(records), isNumber: true },
            { title: 'Stored', cell: ({ bytes }) => size(bytes), isNumber: true },
            { title: 'Last day', cell: (one) => size(one.last_day_bytes), isNumber: true },
            { title: 'Newest', cell: ({ newest }) => <When at={newest} /> },
            {
              title: 'Do',
              cell: ({ channel_id }) => (
                <Button about={channel_id} work={() => open(channel_id)}>
                  Show
                </Button>
              ),
            },
          ]}
        />
      </Listed>
    </>
  );
}

function OneChannel({ id, close }: { readonly id: string; readonly close: () => void }) {
  return (
    <Opened<Channel> title="Channel" verb="channel/show" params={{ channel_id: id }} close={close}>
      {(found) => (
        <>
          <Facts
            of={[
              ['Name', <Name text={found.name ?? 'not known'} />],
              ['Channel', <Id text={found.channel_id} />],
              ['Status', found.status],
              ['Owner', <Id text={found.owner} />],
              ['Revision', count(found.revision)],
              ['Last sequence', count(found.sequence)],
              ['Posts stored', count(found.records)],
              ['Stored', size(found.bytes)],
              ['Stored in the last day', size(found.last_day_bytes)],
              ['Oldest post', <When at={found.oldest} />],
              ['Newest post', <When at={found.newest} />],
            ]}
          />
          <p>
            A blocked channel is as if it was not hosted here: nothing of it is read or written.
            When the block ends, all is as it was.
          </p>
          <Button work={() => offerBlock('channel', id)}>Block …</Button>
        </>
      )}
    </Opened>
  );
}
