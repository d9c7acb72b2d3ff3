"""``python -m chart``: writes anew what is made from the chart: comments, the table of values, snapshots."""

from chart.reference import commented, with_table
from chart.rendering import CHART, SNAPSHOTS, sets, snapshot


def main() -> None:
    """Write the files; whoever changed the chart looks at their differences."""
    for path, write in ((CHART / "values.yaml", commented), (CHART / "README.md", with_table)):
        path.write_text(write(path.read_text()))
    SNAPSHOTS.mkdir(exist_ok=True)
    for old in SNAPSHOTS.iterdir():
        old.unlink()
    for name in sets():
        (SNAPSHOTS / f"{name}.yaml").write_text(snapshot(name))


if __name__ == "__main__":
    main()
